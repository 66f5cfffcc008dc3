// Package expire removes Events an hour after they last happened, so that old Events do not fill the store.
//
// It reads and deletes Events. It sleeps until the oldest one is due; it does not poll. roles runs it beside the
// master. It keeps nothing.
package expire
