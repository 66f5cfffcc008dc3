// Package autoscale makes HorizontalPodAutoscalers for ctl, in kubectl's way and in that of the first seed system.
//
// It promises: what is wrong with the numbers or the target is said before anything is sent; an autoscaler of the seed system's
// command is the same as one of its manifests, as package dialect reads it. Package ctl calls it. It holds no state.
package autoscale
