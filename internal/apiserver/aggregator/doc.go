// Package aggregator serves API groups whose objects are not stored: kube-aggregator's work. Parts of the daemon answer
// them in process (package aggregation).
//
// It promises: one door for all of them, through which a request comes authenticated, and goes on only if its user may
// do this (verb, group, resource, subresource, namespace, name, as for stored kinds) and there is room for it; the
// group is in discovery; what does not exist is a Status (404).
//
// apiserver calls it. It has no state that outlives the daemon.
//
// Its files:
//
//	door.go         the way of a request
//	local.go        groups answered in process, and how their answers are encoded
//	discovery.go    what clients are told of the groups
package aggregator
