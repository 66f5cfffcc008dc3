// Package gpu runs GpuJobs on Slurm clusters, and answers for what is there: sources, files, logs, scripts.
//
// It has two halves, which share the connections (Links):
//
//   - The Controller runs on the leading master. It puts a job on its cluster, follows it, brings its files back, and clears
//     up. Whatever it does may be done again: package slurm sees to it that nothing runs twice. It keeps no state but what
//     is in a job's status, on the cluster and in the store of results, so it may be killed at any moment.
//   - The Server runs on every master and answers the subresources of a GpuJob, and the login of a SlurmCluster. The API server has
//     authorised each request. Only the leading master has connections: the others have it answer.
//
// A SlurmCluster has one connection, whatever the number of its jobs, and a Follower while it has jobs: it reads the marks
// that they leave once a second, over the connection, and asks Slurm's controller once in pollSeconds for all together.
// Without jobs there is no connection and nothing ticks.
//
// A password or key goes from its Secret to the login node and nowhere else: not into a status, log, event or error.
//
//	links.go      the connections, one for each cluster and login
//	controller.go the loop, and the steps of a job
//	follower.go   marks and queues
//	collect.go    results
//	report.go     a cluster's condition
//	server.go     the subresources; logs.go, upload.go, login.go; forward.go has another master answer
//	plan/         what a job is for Slurm, and what news mean for its status; pure
//	results/      files that came back
package gpu
