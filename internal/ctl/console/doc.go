// Package console is where a command of ctl reads and writes: results go to the output, everything else to the error
// output.
//
// It promises that piped output is plain text: colours and progress lines are for terminals only. All packages of ctl
// write through it. It keeps no state except the streams.
package console
