// Package services makes the variables by which a container finds Services, as Kubernetes does (pkg/kubelet/envvars): those
// of its namespace, unless the pod says enableServiceLinks: false, and always those of default/kubernetes. It also knows
// where the cluster's DNS is.
//
// It promises: the variables are those of a complete list of the cluster's Services, so a container never starts without
// KUBERNETES_SERVICE_HOST because the kubelet has just started. Where the API cannot be reached, a container that starts
// again has the variables and the servers that its pod had last.
//
// The kubelet calls it. It reads Services, by a view that other parts of the process may share. What a pod had
// last is in files in the pod's directory, which survive a kill -9, if the API is on another machine.
package services
