// Package tokencleaner deletes join tokens that have expired, as Kubernetes' token cleaner does. An expired token is
// refused whether it is still there or not.
//
// It reads and deletes Secrets of the type bootstrap.kubernetes.io/token. It sleeps until the next one expires. roles
// runs it beside the master. It keeps nothing.
package tokencleaner
