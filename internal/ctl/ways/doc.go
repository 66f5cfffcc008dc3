// Package ways reads how connections to Services go: what each node says of the rules in its kernel, what came of a
// connection tried from within a pod, and which policies select a pod.
//
// It promises: the questions are asked by the nodes' proxies (nodes/proxy), so with the user's own rights; several nodes are
// asked at once. One that does not answer costs no more than Patience, any number of them twice that.
//
// why and trace call it. It keeps no state.
package ways
