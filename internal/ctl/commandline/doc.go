// Package commandline reads the words of ctl's command line. It reorders them for the parser, and completes a word that
// is being typed.
//
// It promises that flags may be anywhere and in any of their forms. Unknown flags are passed on to the parser, which
// refuses them by name. ctl's command tree calls it and passes its flags and commands. It keeps no state.
package commandline
