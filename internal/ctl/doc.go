// Package ctl is the command line of minik8s for people: `minik8sd ctl`.
//
// It promises that an exit code can be trusted (0 done, 1 failed, 2 wrong usage, 3 not found, 4
// exists or conflicts, 5 no server; of exec, the command's own), that a message says what to do next, that what is piped is
// plain text, and that nothing secret is printed that was not asked for by name: describe shows the
// sizes of a Secret's values only.
//
// Command is for main; nothing else calls this package. It speaks to the API server alone, through
// package client/remote, so it works from any machine that has a kubeconfig.
//
// It keeps no state. A kill -9 in the middle of an apply leaves the documents before it applied and
// those after it untouched; the same command again finishes the work.
package ctl
