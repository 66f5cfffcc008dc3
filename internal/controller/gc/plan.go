package gc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// standing is how an owner stands.
type standing int

const (
	there   standing = iota
	absent           // it is gone, or another object has its name
	waiting          // it is being deleted and waits for its dependents
)

// action is what has to be done about one object, in this order.
type action struct {
	release       []*item                    // take the object's reference off these dependents
	wake          []types.UID                // look at these dependents
	dropFinalizer string                     // the object has waited long enough
	dropRefs      []types.UID                // references to owners that are gone, beside others that are not
	remove        metav1.DeletionPropagation // delete the object so; empty: keep it
}

// decide is the whole collector: an object as it stands now, how each of its owners stands, and its
// dependents.
func decide(obj *item, owners []standing, dependents []*item) action {
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
		case there:
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

// blocked says that a dependent that is still there asks its owner to wait for it.
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

// circular says that a dependent waits for its own dependents already: two that own each other would
// wait for ever.
func circular(dependents []*item) bool {
	for _, d := range dependents {
		if d.waiting() {
			return true
		}
	}
	return false
}
