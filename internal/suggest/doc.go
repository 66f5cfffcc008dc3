// Package suggest finds what a person may have meant by a word that is not known: the "did you mean" of settings,
// commands, kinds and the names of objects.
//
// It promises one rule for all of them, and nothing else; it keeps no state. Everybody may call it.
package suggest
