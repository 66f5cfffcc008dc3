// Package services has Kubernetes' own validation say of odd Services for which fields it refuses them, in a file that the
// test of our validation reads.
package services
