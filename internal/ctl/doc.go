// Package ctl is the command line of minik8s for people: `minik8sd ctl`. This package has the tree of commands and
// their flags. The packages below it do the work:
//
//	commandline                          the words of the command line: their order, their completion
//	session console exit brief           one command: its server, its output, its exit code, its wording
//	target                               what arguments name: kinds, objects, selectors
//	get printer describe why             show objects, and what is wrong with them
//	top used                             what nodes, pods and containers use
//	ways trace                           how connections to services go
//	manifest change rollout deletion     write: manifests, single fields, templates, deletions
//	wait                                 until pods are ready, rollouts done, objects gone
//	jointoken storage                    machines that join; the masters' store, its members and copies
//	gpujob                               sources, files, logs and keys of GPU jobs
//	stream cp nodeimage                  terminals, ports, files and images, to and from a node
//	apiproxy                             the API on a port of this machine
//
// It promises reliable exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 exists or conflicts, 5 no server;
// for exec, the command's own. A message says what to do next. Piped output is plain text. Secrets are printed only if
// they were asked for by name: describe shows only the sizes of a Secret's values.
//
// Command is for main; nothing else calls this package or the packages below it. They use only the API server, through
// package client/remote, so ctl works on any machine that has a kubeconfig. The packages below do not know flags and,
// except for commandline, do not know commands: the commands pass them what they need. Only "etcd restore" and "etcd
// recover" work without an API server: main hands in what they do (Offline).
//
// A kind that is not compiled in is found by discovery, which is asked only for words that the table of kinds does not
// have; what all kinds are wanted for (clear, why namespace, completion) asks it too. "get all" means the compiled ones.
//
// It keeps no state. After a kill -9 in the middle of an apply, the documents before it are applied and those after it
// are not; running the command again finishes the work.
package ctl
