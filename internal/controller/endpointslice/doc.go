// Package endpointslice keeps the endpoints of Services: which pods serve each of them, and how well.
//
// It promises: the EndpointSlices of a Service with a selector together name each of its pods that has an address, once for
// each set of ports, in slices of at most 100; a pod that becomes ready, or ceases to be, changes one slice by one write,
// at once. The Endpoints of the Service, which older clients read, follow. Endpoints that people write for a Service
// without a selector are copied to slices ("mirrored"), with Kubernetes' rules. A slow watch makes it write nothing
// twice. Slices of a Service go with it (garbage collection); its Endpoints are deleted.
//
// Where Kubernetes has three controllers (endpoint, endpointslice, endpointslicemirroring) this is one, with a queue for
// each, because all three follow the same objects. Labels and names are theirs: clients go by them. Not taken over: the
// time of the change that led to a write (an annotation for measurements), and what Kubernetes leaves behind: the slices
// of a Service that loses its selector go, since its Endpoints, which stay, are mirrored from then on.
//
// It reads Services, Pods, Nodes (their zones), Endpoints and EndpointSlices, and writes the last two. roles runs it on the
// master that leads. It keeps nothing: after a kill -9 the first lists show what there is.
//
// Its files:
//
//	wanted.go     a Service and its pods: which endpoints there are to be
//	plan.go       these and the slices that there are: what to write
//	endpoints.go  the same as Endpoints
//	mirror.go     Endpoints as slices
//	index.go      which Services a pod serves
//	controller.go slices.go    the queues, and what they write
package endpointslice
