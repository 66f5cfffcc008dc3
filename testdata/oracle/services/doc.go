// Package services has Kubernetes' own validation say of odd Services, Ingresses, IngressClasses and NetworkPolicies for which
// fields it refuses them, in files that the tests of our validation read, and which conformance tests of the network there are.
package services
