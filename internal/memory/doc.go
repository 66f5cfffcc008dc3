// Package memory keeps the process small: it tunes Go's collector by how much is alive, and gives memory back to the kernel when a busy time
// has ended. Without work nothing of it runs.
//
//	memory.go  the collector, and when a busy time has ended
//	pages.go   pages of files, as of the program itself, that the process has in its memory
//
// Who calls it: package roles, once for a process. It has no state but the process's; nothing survives.
package memory
