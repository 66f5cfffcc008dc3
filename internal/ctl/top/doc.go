// Package top shows what nodes, pods and containers use now: once, as a table, or live on a terminal, with the course of
// the last minutes beside each, and how often a container was started again. It asks metrics.k8s.io, so it shows what any
// other client would see, and needs the same rights; restarts are from the pods themselves.
//
// Its files: read.go asks; rows.go orders what was read and remembers its course; frame.go draws, and is pure; top.go is
// the loop with its keys. The command in package ctl calls it. What it remembers ends with the command.
package top
