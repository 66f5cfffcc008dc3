// Package commandline reads the words of ctl's command line: it brings them into the order that the parser wants, and says
// what a word that is being typed may become.
//
// It promises that flags may stand anywhere and be written in any of their forms, and that what it does not know it leaves
// for the parser to refuse by name. ctl's command tree calls it, and hands its flags and commands over. It keeps no state.
package commandline
