// Package jointoken makes, lists and deletes the tokens with which machines join the cluster (package bootstrap).
//
// It promises: the secret of a token is printed once, when it is made. ctl's command token calls it. The tokens are
// Secrets of the cluster; it keeps nothing.
package jointoken
