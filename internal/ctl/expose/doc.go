// Package expose makes a Service for what is there: a pod, the pods of a workload, or those of another Service.
//
// It promises what kubectl expose does: the selector and labels are the object's, the ports those that its containers
// declare unless one is given, and nothing but the new Service is written. ctl's expose calls it. It keeps no state.
package expose
