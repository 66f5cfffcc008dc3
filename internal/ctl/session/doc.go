// Package session has what one running command of ctl uses: its console, its server and its namespace.
//
// It promises to find the server that people expect (the one they name, or else this machine's), and errors that say
// what was tried. ctl makes a Session for each command, and the other packages of ctl use it. It keeps no state.
package session
