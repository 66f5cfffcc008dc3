// Package work measures what users hand in to have it done: functions, workflows and GPU jobs.
//
//	functions.go  functions: calls of functions in Python, cold, warm and in a burst; a thousand that nobody calls
//	workflows.go  workflows: transitions, each of which is in the store before the next
//	gpujobs.go    gpu: jobs on a real Slurm, from their sources to their results
//	standin.go    what Slurm's fixture wants of a test
//
// The command bench calls it, with one function for each part. Nothing stays behind: each part removes the daemon, and the
// Slurm, that it has started.
package work
