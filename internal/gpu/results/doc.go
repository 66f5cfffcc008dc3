// Package results keeps the files that GPU jobs brought back, on the disk of the master that fetched them.
//
// It promises: a file is there whole or not at all, with the checksum that it had on the cluster. A transfer that broke goes
// on where it broke, also in another process. What does not fit on the disk, less a reserve, is not begun; two jobs are not
// promised the same space. Nothing of a job is removed while its files are coming. No name leads out of a job's folder, whatever
// the cluster says. Other users of the machine can read nothing of it.
//
// Package gpu uses it. What survives a kill -9 is all of it but the promises of space: DIR/UID/part/ while files come, DIR/UID/files/
// and DIR/UID/list.json when they are complete, with DIR/UID/left.json, the names of those that were left out.
//
//	store.go  the files
//	room.go   the space that they may take
package results
