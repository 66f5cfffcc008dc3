// Package tokens signs and reads the tokens of service accounts: JSON Web Tokens (RFC 7519), signed with ES256, with
// the same claims as in Kubernetes, so that any reader of Kubernetes' tokens can read them.
//
// It promises: a token that Read accepts was signed by this cluster's key, has not expired, and is for the requested
// audience. It does not know whether the account and the pod still exist; package registry checks that, and roles makes
// the one Authority for it. It stores nothing. Tokens survive a kill -9, because the key does.
package tokens
