// Package slurm runs batch jobs on a Slurm cluster of which only the login node is reached, by SSH.
//
// It promises:
//   - A job is submitted once, whenever the caller, the connection or the login node is lost: Start may be called again at
//     any moment. The submission itself is a script on the login node that holds a lock, looks whether the job was
//     submitted before, and goes on when the connection is cut.
//   - Every value of a Job is quoted. No name, path or option becomes another directive or command.
//   - What all jobs of a cluster cost its controller does not grow with their number: one squeue for all of them. Ends are
//     noticed by small files that the jobs leave, of which the login node alone hears.
//   - What is brought back is whole: it has the size and the checksum that it had there. A broken transfer goes on where it broke.
//     A file that cannot be read keeps no other back.
//
// It knows no kind of minik8s: package gpu says which jobs there are, and when to do what. What survives a kill -9 lies on
// the login node, in the job's own folder (see Layout); this package holds nothing but a connection.
//
//	login/     a login node: one connection with pinned host keys, commands and files over it
//	batch/     the scripts and options of a job, and what squeue and sacct say; pure
//	cluster.go a cluster: start, marks, states, cancel, remove
//	upload.go  sources
//	files.go   results, and what a job prints
//
// The folders on the login node:
//
//	BASE/marks/             what has happened and nobody has read yet: UID.submitted, UID.run, UID.end, UID.refused, UID.uncompiled
//	BASE/compiling.N        locks: so many jobs compile at a time
//	BASE/jobs/NAME.UID/     a job: batch.sh, run.sh, compile.sh, start.sh, jobid, ends/
//	BASE/jobs/NAME.UID/files/  its files: where its scripts run
package slurm
