package loadbalancer

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Controller is the controller.
type Controller struct {
	client   client.Interface
	record   *events.Recorder
	pool     config.AddressPool
	services *informer.Informer[*corev1.Service]
	nodes    *informer.Informer[*corev1.Node]
	slices   *informer.Informer[*discoveryv1.EndpointSlice]
	loop     *loop.Loop

	mu sync.Mutex
	of map[loop.Key]map[string]*discoveryv1.EndpointSlice // slices by their Service
}

// New makes the controller. Without a pool Services have the nodes' addresses.
func New(c client.Interface, views *informer.Views, record *events.Recorder, pool config.AddressPool, log *slog.Logger) *Controller {
	opts := informer.Options{Views: views, Log: log}
	b := &Controller{client: c, record: record, pool: pool, of: map[loop.Key]map[string]*discoveryv1.EndpointSlice{},
		services: informer.New[*corev1.Service](c, api.Services, opts),
		nodes:    informer.New[*corev1.Node](c, api.Nodes, opts),
	}
	b.loop = loop.New("loadbalancer", log, b.reconcile)
	b.services.OnChange(b.serviceChanged)
	b.nodes.OnChange(func(old, now *corev1.Node) {
		if !sameEntry(old, now) {
			b.each(func(*corev1.Service) bool { return true })
		}
	})
	if len(pool) > 0 {
		b.slices = informer.New[*discoveryv1.EndpointSlice](c, api.EndpointSlices, opts)
		b.slices.OnChange(b.sliceChanged)
	}
	return b
}

// Run works until ctx ends.
func (b *Controller) Run(ctx context.Context, ready func()) error {
	sources := []supervise.Source{b.nodes, b.services}
	if b.slices != nil {
		sources = append(sources, b.slices)
	}
	return loop.Drive(ctx, ready, sources, b.loop.Workers(2))
}

// serviceChanged queues a Service, those that wait for an address of the pool or, without one, those that share a port with it.
func (b *Controller) serviceChanged(old, now *corev1.Service) {
	if now != nil && api.Balanced(now) {
		b.loop.Add(loop.Key{Namespace: now.Namespace, Name: now.Name})
	}
	if old == nil || now != nil && apiequality.Semantic.DeepEqual(old.Spec, now.Spec) {
		return // what is new gives nothing free, and is the youngest
	}
	b.each(func(svc *corev1.Service) bool {
		if len(b.pool) > 0 {
			return len(svc.Status.LoadBalancer.Ingress) == 0
		}
		return api.Balanced(old) && touches(svc, old) || now != nil && api.Balanced(now) && touches(svc, now)
	})
}

// each queues the load balancers for which f says so.
func (b *Controller) each(f func(*corev1.Service) bool) {
	for _, svc := range b.services.List() {
		if api.Balanced(svc) && f(svc) {
			b.loop.Add(loop.Key{Namespace: svc.Namespace, Name: svc.Name})
		}
	}
}

func (b *Controller) sliceChanged(old, now *discoveryv1.EndpointSlice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range []*discoveryv1.EndpointSlice{old, now} {
		if s == nil {
			continue
		}
		key := loop.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		if s == now {
			if b.of[key] == nil {
				b.of[key] = map[string]*discoveryv1.EndpointSlice{}
			}
			b.of[key][s.Name] = s
		} else if delete(b.of[key], s.Name); len(b.of[key]) == 0 {
			delete(b.of, key)
		}
		if svc, ok := b.services.Get(key.Namespace, key.Name); ok && api.Balanced(svc) && local(svc) {
			b.loop.Add(key)
		}
	}
}

func local(svc *corev1.Service) bool {
	return svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// serves says which nodes have ready endpoints of a Service, if that matters for who answers; else nil.
func (b *Controller) serves(svc *corev1.Service) map[string]bool {
	if !local(svc) {
		return nil
	}
	out := map[string]bool{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.of[loop.Key{Namespace: svc.Namespace, Name: svc.Name}] {
		for _, e := range s.Endpoints {
			if e.NodeName != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				out[*e.NodeName] = true
			}
		}
	}
	return out
}

func (b *Controller) reconcile(ctx context.Context, key loop.Key) error {
	svc, ok := b.services.Get(key.Namespace, key.Name)
	if !ok || !api.Balanced(svc) || svc.DeletionTimestamp != nil {
		return nil
	}
	upd := svc.DeepCopy()
	if len(b.pool) > 0 {
		addr, err := b.given(ctx, upd)
		if err != nil {
			return gone(err)
		}
		b.announce(upd, addr)
	} else {
		b.onNodes(upd)
	}
	if apiequality.Semantic.DeepEqual(svc.Status, upd.Status) && svc.Annotations[api.AnnouncedByAnnotation] == upd.Annotations[api.AnnouncedByAnnotation] {
		return nil
	}
	_, err := b.client.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource})
	return gone(err)
}

// gone is an error that is none if the Service is not there any more.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// given is the address of the pool that a Service has; invalid: none is free. One that has none gets one by an update, as admission
// gives it with every write; svc is the Service after it.
func (b *Controller) given(ctx context.Context, svc *corev1.Service) (netip.Addr, error) {
	if a := b.inPool(svc); a.IsValid() {
		return a, nil
	}
	obj, err := b.client.Update(ctx, svc, client.WriteOptions{})
	if err != nil {
		return netip.Addr{}, err
	}
	obj.(*corev1.Service).DeepCopyInto(svc)
	return b.inPool(svc), nil
}

func (b *Controller) inPool(svc *corev1.Service) netip.Addr {
	for _, in := range svc.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil && b.pool.Contains(a) {
			return a
		}
	}
	return netip.Addr{}
}

// The reasons that a Service's condition LoadBalancerPortsError has, and those of Events.
const (
	reasonNoAddress = "NoAddress"
	reasonTaken     = "PortTaken"
	reasonAnnounced = "Announced"
)

// announce says in a Service which node answers for its address.
func (b *Controller) announce(svc *corev1.Service, addr netip.Addr) {
	if !addr.IsValid() {
		why := fmt.Sprintf("no address of --lb-pool %s is free: delete a Service, or start the masters with a larger one", b.pool)
		if asked := svc.Spec.LoadBalancerIP; asked != "" { //nolint:staticcheck // it is what people know
			why = fmt.Sprintf("spec.loadBalancerIP, %s, is not free in --lb-pool %s: choose another, or none", asked, b.pool)
		}
		b.troubled(svc, reasonNoAddress, why)
		announcedBy(svc, "")
		return
	}
	b.well(svc)
	before := svc.Annotations[api.AnnouncedByAnnotation]
	// When no node can, it is rather the master that is cut off: who answers goes on.
	if now := announcer(addr, before, b.nodes.List(), b.serves(svc)); now != "" && now != before {
		announcedBy(svc, now)
		b.record.Event(svc, corev1.EventTypeNormal, reasonAnnounced, "Node %s answers for %s", now, addr)
	}
}

func announcedBy(svc *corev1.Service, node string) {
	if node == "" {
		delete(svc.Annotations, api.AnnouncedByAnnotation)
		return
	}
	if svc.Annotations == nil {
		svc.Annotations = map[string]string{}
	}
	svc.Annotations[api.AnnouncedByAnnotation] = node
}

// onNodes gives a Service the nodes' addresses, which it shares with all others: so it says which port is another's.
func (b *Controller) onNodes(svc *corev1.Service) {
	announcedBy(svc, "")
	if ingress := nodesAddresses(b.nodes.List()); len(ingress) > 0 {
		svc.Status.LoadBalancer.Ingress = ingress
	}
	if other, port := rival(svc, b.services.List()); other != nil {
		b.troubled(svc, reasonTaken, fmt.Sprintf("port %d/%s at the nodes' addresses is that of service %s/%s, which is older: choose another, or give the masters a --lb-pool",
			port.Port, port.Protocol, other.Namespace, other.Name))
		return
	}
	b.well(svc)
}

func (b *Controller) troubled(svc *corev1.Service, reason, why string) {
	c := metav1.Condition{Type: corev1.LoadBalancerPortsError, Status: metav1.ConditionTrue, Reason: reason, Message: why,
		LastTransitionTime: metav1.NewTime(clock.Now())}
	if apimeta.SetStatusCondition(&svc.Status.Conditions, c) {
		b.record.Event(svc, corev1.EventTypeWarning, reason, "%s", why)
	}
}

func (b *Controller) well(svc *corev1.Service) {
	apimeta.RemoveStatusCondition(&svc.Status.Conditions, corev1.LoadBalancerPortsError)
}

// sameEntry reports whether a change of a Node is none for load balancers.
func sameEntry(old, now *corev1.Node) bool {
	if old == nil || now == nil {
		return false
	}
	return apiequality.Semantic.DeepEqual(nodesAddresses([]*corev1.Node{old}), nodesAddresses([]*corev1.Node{now})) &&
		old.Annotations[api.NetworksAnnotation] == now.Annotations[api.NetworksAnnotation]
}
