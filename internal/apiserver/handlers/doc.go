// Package handlers serves every kind of the registry's table by the same few functions, one for each verb; there are
// none per kind.
//
//	path -> request -> route -> authorisation -> limiter -> verb -> registry -> encoding
//
// It promises: access is checked before a body is read or a name is revealed; one table of routes gives the verb
// under which each path and method is authorised; a body is bounded in size and time; a mistake in a query, a body or
// an option is reported with its place (400), and answers are encoded by package encoding.
//
// apiserver calls it, with the user in the request's context. It decides nothing about objects: registry does. It has
// no state.
//
// Its files:
//
//	handlers.go route.go    the one handler, and which function serves a path and a method
//	request.go body.go options.go    parsing a request
//	verbs.go watch.go answer.go      the verbs, and how they answer
//	actions.go pods.go proxy.go      subresources, and reviews
package handlers
