// Package authentication determines the user of a request, from a certificate, a token or the unix socket, and the
// user to impersonate, if the request asks for that.
//
// It promises: a client certificate counts only if it is verified against the cluster's CA, and as long as it has not
// expired, on a connection that stays open too; an invalid token is
// refused even where none is needed; only root's unix socket needs neither; an Impersonate- header is obeyed or
// refused, never ignored.
//
// apiserver calls it, once for each request. It does not decide what a user may do: registry does (authorisation),
// and decides about impersonation too. It has no state.
package authentication
