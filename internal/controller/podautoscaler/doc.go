// Package podautoscaler keeps the number of a workload's pods in step with what is measured, as HorizontalPodAutoscalers ask.
//
// It promises: each autoscaler is looked at when it is made, when its spec changes, and every 15 s (or as often as its own
// annotation says); where there is no autoscaler nothing happens at all. What is decided then, and why, is package decide's;
// this package gathers the numbers, tells the target through its subresource scale, writes the status with the sum that was
// done, and records Events. Any kind that has that subresource can be scaled.
//
// It reads HorizontalPodAutoscalers, Pods and Nodes, asks Metrics, and reads and writes Scales. Metrics are an interface of its
// own (metrics.go), as Kubernetes has one for its autoscaler; package metricsapi is that over the API. roles runs it on the
// master that leads. An answer that takes long delays only the autoscalers that wait for it.
//
// After a kill -9, or on another master, the recommendations of the last minutes are not known: the number of pods that there
// are counts as one, so that nothing is taken away for five minutes, as in Kubernetes.
//
//	controller.go  what is looked at when
//	sync.go        one look at one autoscaler
//	readings.go    what is measured for it
//	index.go       which pods are whose
package podautoscaler
