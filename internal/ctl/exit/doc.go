// Package exit has the exit codes of ctl and the words in which errors are told.
//
// It promises codes that scripts may trust (0 done, 1 failed, 2 wrong usage, 3 not found, 4 exists or conflicts, 5 no
// server; of exec, the command's own), and a message that says what to do next. It prints nothing itself and keeps no
// state. All rooms of ctl make their errors with it.
package exit
