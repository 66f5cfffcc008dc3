// Package aggregator serves API groups whose objects are not stored: kube-aggregator's work. Parts of the daemon answer
// some in process (package aggregation), and an APIService leads others to a Service, whose pods are an extension API
// server. Such a Service comes before a part; what is stored is never led elsewhere.
//
// It promises: one door for all of them, through which a request comes authenticated, and goes on only if its user may
// do this (verb, group, resource, subresource, namespace, name, as for stored kinds) and there is room for it; the
// group is in discovery; what does not exist is a Status (404), and so is a Service that cannot be asked (503).
//
// An extension API server is told whom a request is from by the X-Remote headers, and believes them because they come
// with the front proxy's certificate. Those that the client sent, its token and its impersonation are not passed on.
// It is a pod of the Service's namespace, known by spec.caBundle under the name SERVICE.NAMESPACE.svc; a redirect by it is
// refused (502), and an answer that takes too long (504) unless it is a watch or a stream. Its discovery is read when a
// client wants to know, bounded in size, and kept for a minute or until its APIService changes.
//
// apiserver calls it; roles gives it the ways to Services, and the controller of APIServices asks by them. It has no state
// that outlives the daemon.
//
// Its files:
//
//	door.go         the way of a request
//	local.go        answers from in process, encoded
//	forward.go      a request on its way to a Service, and the answer; remoteuser.go: whom it is from
//	services.go     connections to Services
//	discovery.go    what clients are told of the groups; remote.go: what Services say
package aggregator
