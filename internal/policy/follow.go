package policy

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/minik8s"
)

// followed is what runs while there is a policy.
type followed struct {
	stop    context.CancelFunc // nil: nothing runs
	running *sync.WaitGroup
}

// follow begins to follow pods and namespaces, and to repair the rules.
func (e *Enforcer) follow(ctx context.Context, failed chan<- error) {
	peers := e.cfg.Follow()
	peers.Pods.OnChange(func(old, now *minik8s.PodAddress) {
		e.note(func() { e.seen.pods[nameOf(old, now)] = true })
	})
	peers.Namespaces.OnChange(func(old, now *corev1.Namespace) {
		e.note(func() { e.seen.namespaces[nameOf(old, now).Name] = true })
	})
	peers.Pods.OnList(func() { e.note(func() { e.seen.lists[listPods] = true }) })
	peers.Namespaces.OnList(func() { e.note(func() { e.seen.lists[listNamespaces] = true }) })
	e.note(func() {
		e.seen.peers = &peers
		for name := range e.seen.admitted { // they may not be in the list yet
			e.seen.pods[name] = true
		}
	})
	ctx, stop := context.WithCancel(ctx)
	running := &sync.WaitGroup{}
	e.following = followed{stop, running}
	for _, run := range []func(context.Context, func()) error{peers.Pods.Run, peers.Namespaces.Run} {
		running.Go(func() {
			if err := run(ctx, func() {}); err != nil {
				failed <- err
			}
		})
	}
	running.Go(func() { e.keeper.Run(ctx) })
}

// unfollow ends what follow has begun.
func (e *Enforcer) unfollow() {
	if e.following.stop == nil {
		return
	}
	e.following.stop()
	e.following.running.Wait()
	e.following = followed{}
	e.seen.Lock()
	e.forgetPeers()
	e.seen.Unlock()
}

// followsPods reports whether pods matter: there is a policy, or it is not known yet whether there is one. seen is locked.
func (e *Enforcer) followsPods() bool {
	return e.seen.peers != nil || !e.seen.lists[listPolicies] || len(e.seen.policies) > 0
}
