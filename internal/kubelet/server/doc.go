// Package server is the kubelet's HTTPS server: what only a pod's node can provide. Its paths are those of Kubernetes'
// kubelet (pkg/kubelet/server/server.go):
//
//	/containerLogs/NAMESPACE/POD/CONTAINER   a log; the query is that of pods/log
//	/exec/NAMESPACE/POD/CONTAINER            a command in a container; the query is that of pods/exec
//	/attach/NAMESPACE/POD/CONTAINER          a container's own streams
//	/portForward/NAMESPACE/POD               connections to a pod's ports
//	/pods                                    the pods of this node
//	/stats/summary                           what the node, its pods and their containers use
//	/metrics/cadvisor, /metrics/resource     the same for Prometheus
//	/metrics/node                            the machine, as node-exporter says it (not in Kubernetes)
//	/metrics                                 the daemon itself
//	/api/v1.3/, /api/v2.1/                   cAdvisor's REST API (not in Kubernetes any more)
//	/healthz                                 whether the kubelet works
//	/minik8s/services/NAMESPACE/NAME         what this node does with connections to a Service (not in Kubernetes)
//	/minik8s/dial/NAMESPACE/POD              whether a connection from within a pod succeeds (not in Kubernetes)
//	/minik8s/lookup/NAMESPACE/POD            whether a name is found from within a pod (not in Kubernetes)
//	/images                                  this node's images: list, pull or import, remove (not in Kubernetes)
//
// It promises: who has no certificate of the cluster's CA gets no connection, and who is not of the group
// system:masters, as the API server is, gets 403; a refusal comes before a connection is upgraded, as a Status in JSON;
// when a client stops reading or disconnects, the work for it ends.
//
// roles runs it beside the kubelet. The API server authorises users and passes their requests on to it; package
// streaming has the protocols. It has no state: its streams end with the daemon.
package server
