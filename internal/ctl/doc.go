// Package ctl is the command line of minik8s for people: `minik8sd ctl`. Here are the tree of commands and their flags; what
// they do is in the rooms below:
//
//	commandline                          the words of the command line: their order, their completion
//	session console exit brief           one command at work: its server, where it writes, how it ends, in which words
//	target                               what arguments name: kinds, objects, selectors
//	get printer describe why             what objects look like, and what is wrong with them
//	manifest change rollout deletion     what is written: manifests, single fields, templates, deletions
//	wait                                 until pods are ready, rollouts done, objects gone
//	stream cp nodeimage                  terminals, ports, files and images, to a node and back
//
// It promises that an exit code can be trusted (0 done, 1 failed, 2 wrong usage, 3 not found, 4
// exists or conflicts, 5 no server; of exec, the command's own), that a message says what to do next, that what is piped is
// plain text, and that nothing secret is printed that was not asked for by name: describe shows the
// sizes of a Secret's values only.
//
// Command is for main; nothing else calls this package or its rooms. They speak to the API server alone, through
// package client/remote, so ctl works from any machine that has a kubeconfig. The rooms know no flag and, but for
// commandline, no command: each is called by the commands with what it needs.
//
// It keeps no state. A kill -9 in the middle of an apply leaves the documents before it applied and
// those after it untouched; the same command again finishes the work.
package ctl
