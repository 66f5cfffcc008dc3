package gc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownerState is the state of an owner.
type ownerState int

const (
	exists  ownerState = iota
	absent             // deleted, or another object has its name
	waiting            // being deleted, and waits for its dependents
)

// action is what to do about one object, in this order.
type action struct {
	release       []*item                    // remove the reference to the object from these dependents
	wake          []types.UID                // reconcile these dependents
	dropFinalizer string                     // nothing blocks the object's deletion any more
	dropRefs      []types.UID                // references to deleted owners, beside owners that exist
	remove        metav1.DeletionPropagation // delete the object with this policy; empty: keep it
}

// decide is the collector's decision, from an object as it is now, the states of its owners, and its dependents. It
// is pure, and follows Kubernetes' attemptToDeleteItem (pkg/controller/garbagecollector/garbagecollector.go).
func decide(obj *item, owners []ownerState, dependents []*item) action {
	switch {
	case obj.deleting && obj.orphan:
		return action{release: dependents, dropFinalizer: metav1.FinalizerOrphanDependents}
	case obj.waiting():
		a := action{}
		for _, d := range dependents {
			a.wake = append(a.wake, d.uid)
		}
		if !blocked(obj.uid, dependents) {
			a.dropFinalizer = metav1.FinalizerDeleteDependents
		}
		return a
	case obj.deleting || len(obj.owners) == 0:
		return action{}
	}
	var goneRefs []types.UID
	alive, holds := 0, false
	for i, o := range obj.owners {
		switch owners[i] {
		case exists:
			alive++
		case waiting:
			holds = true
			goneRefs = append(goneRefs, o.UID)
		default:
			goneRefs = append(goneRefs, o.UID)
		}
	}
	switch {
	case alive > 0:
		return action{dropRefs: goneRefs}
	case obj.orphan:
		return action{remove: metav1.DeletePropagationOrphan}
	case obj.foreground, holds && len(dependents) > 0 && !circular(dependents):
		return action{remove: metav1.DeletePropagationForeground}
	}
	return action{remove: metav1.DeletePropagationBackground}
}

// blocked reports whether a dependent exists that blocks the owner's deletion (blockOwnerDeletion).
func blocked(owner types.UID, dependents []*item) bool {
	for _, d := range dependents {
		for _, o := range d.owners {
			if o.UID == owner && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion {
				return true
			}
		}
	}
	return false
}

// circular reports whether a dependent is itself waiting for its dependents: two objects that own each other would
// wait for ever.
func circular(dependents []*item) bool {
	for _, d := range dependents {
		if d.waiting() {
			return true
		}
	}
	return false
}
