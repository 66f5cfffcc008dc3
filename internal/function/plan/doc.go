// Package plan decides what a Function means: names derived from its own, the ReplicaSet of its instances, and how many
// instances a load asks for. It is pure: it reads no clock and no API.
//
//	names.go   names of pods and images
//	set.go     the ReplicaSet
//	scaler.go  how many instances
package plan
