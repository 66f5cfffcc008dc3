// Package podautoscaler runs Kubernetes' own HorizontalPodAutoscaler controller beside ours, over generated autoscalers, pods
// and metrics, and compares what each does in every step: replicas, status, conditions and Events with their words. Both ask
// for the time of day, so each world is a bubble of testing/synctest, in which minutes pass at once. The numbers are seeded: a
// failure names its seed and comes again; those that once failed are tried first.
package podautoscaler
