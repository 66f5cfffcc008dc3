// Package expire removes Events an hour after they last happened, or when there are too many, so that they do not fill the
// store.
//
// It reads, counts and deletes Events. It sleeps until the oldest one is due or too many have come; it does not poll. roles runs
// it beside the master. It keeps nothing.
package expire
