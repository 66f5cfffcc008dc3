// Package tokens signs and reads the tokens of service accounts: JSON Web Tokens (RFC 7519) signed with
// ES256, their claims laid out as Kubernetes lays them out, so that what reads Kubernetes' tokens reads these.
//
// It promises: what Read returns was signed by this cluster's key, is not expired, and is meant for one of
// the audiences asked for. Whether the account and the pod still exist it does not know: package registry
// does, for which roles makes the one Authority. It stores nothing; tokens outlive a kill -9 as the key does.
package tokens
