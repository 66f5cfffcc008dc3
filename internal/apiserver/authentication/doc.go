// Package authentication is who asks: the user whose certificate, token or unix socket a request came with, or whom that
// user may impersonate.
//
// It promises: a client certificate counts only as verified against the cluster's CA; a token that does not hold is
// refused even where none is needed; only root's unix socket needs neither; an Impersonate- header is obeyed or refused,
// never passed over.
//
// apiserver calls it, once for each request. It decides nothing about what a user may do: that is registry's
// (authorisation), which it asks about impersonation. It has no state.
package authentication
