// Package serviceaccount gives every namespace the two objects that clients of Kubernetes expect: the ServiceAccount
// "default" and the ConfigMap "kube-root-ca.crt" with the cluster's CA.
//
// It reads Namespaces, ServiceAccounts and ConfigMaps, and writes those two objects, also after they were deleted or
// changed. roles runs it beside the master. It keeps nothing.
package serviceaccount
