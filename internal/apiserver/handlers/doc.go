// Package handlers serves every kind of the registry's table by the same few functions, one for each verb; there is
// none per kind.
//
//	path -> request -> route -> authorisation -> limiter -> verb -> registry -> encoding
//
// It promises: who may is asked before a body is read or a name is told; one table of routes says as what verb each path
// and method is judged; a body is bounded in size and time; a mistake in a query, a body or an option is named with its
// place (400), and answers come as package encoding makes them.
//
// apiserver calls it, with who asks in the request's context. It decides nothing about objects: that is registry's. It
// has no state.
//
// Its files:
//
//	handlers.go route.go    the one handler, and which function serves a path and a method
//	request.go body.go options.go    a request taken apart
//	verbs.go watch.go answer.go      the verbs, and how they answer
//	scale.go actions.go pods.go      subresources, and questions
package handlers
