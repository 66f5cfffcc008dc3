// Package session is one command of ctl at work: the console it writes to, the server it talks to, the namespace it
// works in.
//
// It promises that the server is found as people expect (what they name, else what this machine has), and that an error
// says what was tried. ctl makes a Session for each command; the other rooms of ctl work with it. It keeps no state.
package session
