// Package console is where a command of ctl reads and writes: results to the output, everything else beside it.
//
// It promises that what is piped is plain text: colours and progress lines are for terminals only. All rooms of ctl
// write through it. It keeps no state but the streams.
package console
