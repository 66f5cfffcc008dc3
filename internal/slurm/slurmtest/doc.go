// Package slurmtest is a real Slurm cluster for tests, with a login node: munge, slurmctld, slurmd's with two graphics cards each,
// sshd and, if asked for, slurmdbd and MariaDB, from the packages of the machine's distribution.
//
// It promises:
//   - The cluster lives in namespaces of its own (processes, mounts, network), so several run side by side, and nothing of the
//     machine is changed.
//   - All of it is gone when the test ends, panics or is killed with SIGKILL: processes, mounts, its directory and its cgroup. A
//     process beside the test, keep.sh, sees to it.
//   - Jobs run as a user who exists only there. Two devices that do nothing stand for cards.
//   - A job that takes too much memory is killed, and is OUT_OF_MEMORY, where cgroup v1 counts memory; elsewhere Slurm looks once
//     per second and calls such a job FAILED (JobLaunchFailure). See Cluster.OutOfMemory.
//
// Slurm's own times, which no setting makes shorter: time limits are whole minutes, rounded up, and looked at every 30 s (Expire
// ends a job within these). A node that says nothing is down after some 20 s, and its jobs run on another some 6 s later.
//
//	slurmtest.go  Start
//	files.go      what the cluster reads, from files/
//	control.go    what a test does to the cluster
//	dial.go       connections from within its network
//	files/        keep.sh runs setup.sh in the namespaces; start and stop are the parts'
//
// Only tests and benchmarks import it. deploy/testtools.sh installs what it needs; without that the tests are skipped. On two cores a
// cluster starts in 0.3 to 1 s and takes 20 MiB, with accounting in 2.5 to 3.5 s and 130 MiB, so every test may have its own; 200
// small jobs take it 6 s.
package slurmtest
