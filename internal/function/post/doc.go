// Package post sends requests of HTTP/1.1 to one server: a function's instance. It is what a call passes on its way to its function, so it
// costs little: a request is written and its answer read by the goroutine that asks, where net/http's client has two more for each
// connection. Answers are parsed by net/http.
//
// Package function calls it. It promises: a request is written at most once; an error says whether any of it may have been written, so
// that it may be sent elsewhere if not; whatever the server does (answers before it has read all, closes, says too much, or nothing) ends
// with its request, at the latest with the request's context; a connection is used again only after an answer that has ended as it should,
// and while its server is there. There is no state but them.
package post
