// Package authorization is who may do what: masters everything, parts of the daemon what their rules say, a node what is
// its own and what its pods use, a service account to read its own namespace.
//
// It promises: parts, nodes, service accounts and people are judged by the same rules, in process and over the wire; a
// refusal tells no names and reads nothing but whose pods are where; reviews of access (kubectl auth can-i) ask the very
// rules that decide.
//
// registry calls it, before anything is read. It has no state.
//
// Its files:
//
//	user.go         who asks, and the groups that mean something here
//	authorizer.go   what is judged, and how; references.go: what a pod names
//	rules.go        what each part may do
//	review.go       what the rules would say
package authorization
