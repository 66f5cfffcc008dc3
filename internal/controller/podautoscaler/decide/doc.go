// Package decide says how many pods a HorizontalPodAutoscaler wants, from numbers that others have gathered.
//
// It promises Kubernetes' algorithm, step by step (k8s.io/kubernetes 1.37, pkg/controller/podautoscaler): which pods count,
// and as what, while they are pending, not ready, without metrics or on their way out; tolerance and rounding; which of
// several metrics decides; stabilisation, policies and limits; conditions and events with their reasons and words. The oracle
// (testdata/oracle/podautoscaler) compares it with Kubernetes' own controller. Each decision explains itself: the sum in
// lines of text, with its numbers.
//
// Two things are properties of an autoscaler, in annotations of ours (package api): of what a utilization is a percentage, and
// whether the metric of one resource comes before the others. Without these annotations all is as in Kubernetes. Of the seed
// systems' rule that windows count from the last scaling the algorithm is the general case: they count from each.
//
// Package podautoscaler calls it. It does no I/O and asks for no time. What it remembers from one decision to the next is in
// a History, which its caller keeps: after a kill -9 it is empty, as in Kubernetes, and the number of pods that there are
// then counts as the first recommendation.
//
//	input.go      what a decision is made from, and its result
//	decide.go     the course of a decision
//	metric.go     what one metric wants
//	usage.go      metrics that each pod has
//	pods.go       which pods count
//	basis.go      of what a utilization is a percentage
//	limit.go      stabilisation, policies, and the least and most pods
//	history.go    recommendations and scalings that still count
//	conditions.go
package decide
