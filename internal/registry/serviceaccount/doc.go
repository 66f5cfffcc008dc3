// Package serviceaccount makes the tokens of service accounts (the subresource token) and authenticates requests that
// carry one.
//
// It promises: a token is valid as long as its account exists, and its pod if it is bound to one, checked against the
// newest version; a kubelet gets tokens only for pods on its own node, only bound ones, and for the audiences of
// their volumes; a token for one audience is not accepted for another.
//
// registry calls it after it has authorised the request; package tokens signs. It has no state: whether a token is
// valid follows from the objects.
package serviceaccount
