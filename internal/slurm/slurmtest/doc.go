// Package slurmtest is a real Slurm cluster for tests, with a login node: munge, slurmctld, two slurmd with two graphics cards
// each, sshd, from the packages of the machine's distribution.
//
// It promises: the cluster lives in namespaces of its own (processes, mounts, network), so several run side by side, nothing of the
// machine is changed, and all of it ends when the test ends, is killed or panics. The jobs run as a user who exists only there.
// Two devices that do nothing stand for cards.
//
// Only tests and benchmarks import it. deploy/testtools.sh installs what it needs; without that the tests are skipped.
package slurmtest
