// Package routes is the table by which the gateway finds where a request goes. It is pure and knows no front end: DNS
// objects, Ingresses and what may come beside them are turned into routes by package frontends.
//
// Who calls it: package gateway. A Table is never changed, so any number of goroutines may look things up; a lookup does not
// allocate. The same routes give the same table in whatever order they come. Nothing survives.
package routes
