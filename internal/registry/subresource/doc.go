// Package subresource holds the subresources that are more than a part of their object: a pod's binding and eviction,
// a service account's token, the scale of what has replicas. Package strategy names them in the rows of their kinds;
// each uses of the registry what registry.Objects offers.
//
// It promises: what an action does is done in the registry's one flow, with its validation, its guarded write and its
// events. It has no state.
package subresource
