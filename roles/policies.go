package roles

import (
	"context"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/policy"
)

// runPolicies carries NetworkPolicies out on this machine. It is ready as soon as pods may ask for theirs: they wait
// themselves for those to be in force.
func (d *Daemon) runPolicies(ctx context.Context, ready func()) error {
	opts := informer.Options{Views: d.nodeViews(), Log: d.log}
	rec := events.New(d.asNode(), "network-policy", d.cfg.NodeName, d.log)
	e := policy.New(policy.Config{Table: d.servicesTable(), Links: d.network.LinkPrefix(), NodeName: d.cfg.NodeName, Ruleset: d.filter,
		Follow: func() policy.Peers {
			return policy.Peers{Pods: informer.New[*minik8s.PodAddress](d.asNode(), api.PodAddresses, opts),
				Namespaces: informer.New[*corev1.Namespace](d.asNode(), api.Namespaces, opts)}
		},
		Warn: func(np *networkingv1.NetworkPolicy, message string) {
			rec.Event(np, corev1.EventTypeWarning, "PartlyIgnored", "%s", message)
		},
		Log: d.log}, informer.New[*networkingv1.NetworkPolicy](d.asNode(), api.NetworkPolicies, opts))
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { rec.Run(ctx) })
	d.policies.Store(e)
	ready()
	return e.Run(ctx, func() {})
}

// podPolicies are the policies as the kubelet sees them: those that run now, since the part may be started again.
type podPolicies struct{ d *Daemon }

// Admit implements kubelet.Policies.
func (p podPolicies) Admit(ctx context.Context, pod *corev1.Pod, addresses []netip.Addr) bool {
	return p.d.policies.Load().Admit(ctx, pod, addresses)
}

// Release implements kubelet.Policies.
func (p podPolicies) Release(uid types.UID) { p.d.policies.Load().Release(uid) }
