// Package exit has the exit codes of ctl and makes the text of its errors.
//
// It promises reliable exit codes (0 done, 1 failed, 2 wrong usage, 3 not found, 4 exists or conflicts, 5 no server;
// for exec, the command's own) and messages that say what to do next. It prints nothing and keeps no state. All
// packages of ctl make their errors with it.
package exit
