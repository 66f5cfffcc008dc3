// Package suggest finds what may have been meant by an unknown word: the "did you mean" for settings, commands, kinds
// and the names of objects.
//
// It promises the same rule for all of them. It keeps no state. Any package may call it.
package suggest
