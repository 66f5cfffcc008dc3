// Package authorization decides who may do what. Masters may do everything, parts of the daemon what their rules
// allow. A node may use its own objects and what its pods use, as in Kubernetes: upstream's node authorizer and
// NodeRestriction are the judge of that (testdata/oracle/node), and the few differences are named in the test of package
// apiserver. A service account may read its own namespace.
//
// It promises: parts, nodes, service accounts and people are judged by the same rules, in process and over the wire;
// a refusal reveals no names and reads nothing but which node each pod is on; access reviews (kubectl auth can-i) use
// the same rules as requests.
//
// registry calls it, before anything is read. It has no state.
//
// Its files:
//
//	user.go         users, and the groups that have a meaning here
//	authorizer.go   what is judged, and how; references.go: the objects that a pod refers to; images.go: its images
//	extensions.go   what an extension API server may read and ask
//	rules.go        what each part may do, and Prometheus; nodeproxy.go: the rights to single paths of a kubelet
//	noderestriction.go  what a kubelet may write into its own Node, and whose a node's name is
//	review.go       access reviews
package authorization
