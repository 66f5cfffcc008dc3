// Package frontends turns the objects that lead hosts and paths to Services into routes of the gateway: what DNS objects and
// Ingresses mean, and nothing else. It is pure.
//
// Who calls it: package gateway, with each object of those kinds, and who writes their status. An object that is not
// complete yet, a DNS object without its address for example, gives what can be given: mostly nothing. Nothing survives.
package frontends
