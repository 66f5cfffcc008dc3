// Package metricsapi asks the API for what autoscalers need: metrics.k8s.io for what pods use, custom.metrics.k8s.io and
// external.metrics.k8s.io for all else, in the versions that Kubernetes' autoscaler asks for.
//
// It promises: one question to metrics.k8s.io is not asked again within a second. Where several autoscalers ask about one
// namespace, the whole namespace is asked for once, and each gets its pods from that answer by their labels, if the answer has
// labels; Kubernetes' metrics server and ours give them. A question takes ten seconds at most. Errors are in the words of
// Kubernetes' autoscaler.
//
// Package podautoscaler uses it through its interface Metrics; roles makes it, with a Getter that has the controller's rights.
// It keeps answers for a second, and which selectors were asked for of late: after a kill -9 it asks.
package metricsapi
