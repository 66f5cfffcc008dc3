// Package podconfig translates a pod's spec into the runtime's configuration of its sandbox and of each of its
// containers.
//
// It promises: the same spec and the same objects give the same configuration, by Kubernetes' rules (variables and
// their references, DNS, host names, security contexts, cgroup settings, OOM scores); a missing object or key is an
// error that names it, of type *objects.Missing if a retry does not help before that object changes.
//
// The kubelet's worker calls it, before it makes a sandbox or a container. It reads ConfigMaps and Secrets through
// package objects and makes the files that are mounted; it starts nothing. Nothing of it survives a kill -9, and
// nothing needs to.
//
//	builder.go    Builder: what the translation needs to know of the node
//	sandbox.go    the sandbox: host name, namespaces, sysctls
//	container.go  one attempt of a container; its mounts
//	dns.go        resolv.conf by dnsPolicy and dnsConfig
//	env.go        variables, and references to them
//	fields.go     the downward API: fields of the pod, requests and limits
//	security.go   security contexts; runAsNonRoot
//	resources.go  cgroup settings and OOM scores
package podconfig
