package policy

import (
	"context"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/policy/plan"
)

// admission is a pod of this node, and the ticket with which its kubelet waits for its policies; 0: it need not wait.
type admission struct {
	*plan.Pod
	ticket int
}

// patience is how long a pod waits for its policies: longer ones than this do not keep it from starting.
const patience = 5 * time.Second

// Admit tells that a pod of this node has these addresses, before the API knows it, and returns when its policies are in
// force, so that its processes can neither be reached nor reach anybody before that. For a pod whose policies are in force it
// returns at once. While policies cannot be known, since no master can be reached, pods do not wait for long: the first one waits five
// seconds, those after it not at all. It reports whether the pod's policies are in force.
func (e *Enforcer) Admit(ctx context.Context, pod *corev1.Pod, addresses []netip.Addr) bool {
	if pod.Spec.HostNetwork {
		return true
	}
	p := plan.PodOf(api.PodAddressOf(pod), e.cfg.NodeName)
	p.Addresses, p.Here, p.Certain = slices.Clone(addresses), true, true
	p.Addresses = slices.DeleteFunc(p.Addresses, func(a netip.Addr) bool { return !a.Is4() })
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}

	e.seen.Lock()
	if was := e.seen.admitted[name]; was != nil && was.UID == p.UID && slices.Equal(was.Addresses, p.Addresses) {
		ticket, late := was.ticket, e.seen.late
		e.seen.Unlock()
		return !late && e.answered(ctx, ticket) // another of its containers may wait still
	}
	for other, has := range e.seen.admitted { // an address is given anew when its pod is gone
		if slices.ContainsFunc(has.Addresses, func(a netip.Addr) bool { return slices.Contains(p.Addresses, a) }) {
			delete(e.seen.admitted, other)
			e.changed(other)
		}
	}
	now := &admission{Pod: p}
	e.seen.admitted[name] = now
	e.changed(name)
	if !e.followsPods() {
		e.seen.Unlock()
		return true
	}
	e.seen.asked++
	now.ticket = e.seen.asked
	ticket, late := now.ticket, e.seen.late
	e.seen.Unlock()
	e.note(func() {})
	return !late && e.answered(ctx, ticket)
}

// answered waits until the kernel has what was known when a ticket was taken.
func (e *Enforcer) answered(ctx context.Context, ticket int) bool {
	t := time.NewTimer(patience)
	defer t.Stop()
	for {
		e.seen.Lock()
		done, answer := e.seen.done >= ticket, e.seen.answer
		e.seen.Unlock()
		if done {
			return true
		}
		select {
		case <-answer:
		case <-t.C:
			e.cfg.Log.Warn("pods start before it is known which NetworkPolicies are about them")
			e.note(func() { e.seen.late = true })
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// changed notes that a pod has changed; seen is locked. All that are admitted are looked at when pods begin to be followed.
func (e *Enforcer) changed(name types.NamespacedName) {
	if e.seen.peers != nil {
		e.seen.pods[name] = true
	}
}

// Release tells that a pod has none of its addresses any more.
func (e *Enforcer) Release(uid types.UID) {
	e.note(func() {
		for name, p := range e.seen.admitted {
			if p.UID == uid {
				delete(e.seen.admitted, name)
				e.changed(name)
			}
		}
	})
}
