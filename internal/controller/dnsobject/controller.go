package dnsobject

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
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
	objects  *informer.Informer[*minik8s.DNS]
	services *informer.Informer[*corev1.Service]
	slices   *informer.Informer[*discoveryv1.EndpointSlice]
	ranges   *informer.Informer[*networkingv1.ServiceCIDR]
	loop     *loop.Loop

	mu      sync.Mutex
	namedBy map[loop.Key]map[loop.Key]bool // the DNS objects that name a Service, or an address
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, record *events.Recorder, log *slog.Logger) *Controller {
	opts := informer.Options{Views: views, Log: log}
	d := &Controller{client: c, record: record, namedBy: map[loop.Key]map[loop.Key]bool{},
		objects:  informer.New[*minik8s.DNS](c, api.DNSes, opts),
		services: informer.New[*corev1.Service](c, api.Services, opts),
		slices:   informer.New[*discoveryv1.EndpointSlice](c, api.EndpointSlices, opts),
		ranges:   informer.New[*networkingv1.ServiceCIDR](c, api.ServiceCIDRs, opts),
	}
	d.loop = loop.New("dnsobject", log, d.reconcile)
	d.objects.OnChange(d.objectChanged)
	d.services.OnChange(func(old, now *corev1.Service) {
		if old != nil && now != nil && apiequality.Semantic.DeepEqual(old.Spec, now.Spec) {
			return
		}
		for _, s := range []*corev1.Service{old, now} {
			if s != nil {
				d.wake(loop.Key{Namespace: s.Namespace, Name: s.Name}, loop.Key{Name: s.Spec.ClusterIP})
			}
		}
	})
	d.slices.OnChange(func(old, now *discoveryv1.EndpointSlice) {
		for _, s := range []*discoveryv1.EndpointSlice{old, now} {
			if s == nil {
				continue
			}
			named := loop.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
			d.wake(named)
			if svc, ok := d.services.Get(named.Namespace, named.Name); ok {
				d.wake(loop.Key{Name: svc.Spec.ClusterIP})
			}
		}
	})
	return d
}

// Run works until ctx ends.
func (d *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{d.ranges, d.services, d.slices, d.objects}, d.loop.Workers(2))
}

func (d *Controller) objectChanged(old, now *minik8s.DNS) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old != nil {
		key := loop.Key{Namespace: old.Namespace, Name: old.Name}
		for _, svc := range servicesOf(old) {
			if delete(d.namedBy[svc], key); len(d.namedBy[svc]) == 0 {
				delete(d.namedBy, svc)
			}
		}
	}
	if now == nil {
		return
	}
	key := loop.Key{Namespace: now.Namespace, Name: now.Name}
	for _, svc := range servicesOf(now) {
		if d.namedBy[svc] == nil {
			d.namedBy[svc] = map[loop.Key]bool{}
		}
		d.namedBy[svc][key] = true
	}
	d.loop.Add(key)
}

// servicesOf are the Services that an object names, and as keys without a namespace the addresses.
func servicesOf(d *minik8s.DNS) (out []loop.Key) {
	for i := range d.Spec.Paths {
		switch t, err := d.Spec.Paths[i].Target(); {
		case err != nil:
		case t.Service != "":
			out = append(out, loop.Key{Namespace: d.Namespace, Name: t.Service})
		default:
			out = append(out, loop.Key{Name: t.Addr.String()})
		}
	}
	return out
}

// wake queues the objects that name one of these.
func (d *Controller) wake(named ...loop.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range named {
		for key := range d.namedBy[n] {
			d.loop.Add(key)
		}
	}
}

// seen is what the informers show.
type seen struct {
	d         *Controller
	byService map[loop.Key][]*discoveryv1.EndpointSlice
	byAddress map[netip.Addr]*corev1.Service
}

func (s seen) service(namespace, name string) *corev1.Service {
	svc, _ := s.d.services.Get(namespace, name)
	return svc
}

func (s seen) slices(namespace, service string) []*discoveryv1.EndpointSlice {
	return s.byService[loop.Key{Namespace: namespace, Name: service}]
}

func (s seen) at(a netip.Addr) *corev1.Service { return s.byAddress[a] }

func (s seen) ranged(a netip.Addr) bool {
	for _, r := range s.d.ranges.List() {
		for _, cidr := range r.Spec.CIDRs {
			if p, err := netip.ParsePrefix(cidr); err == nil && p.Contains(a) {
				return true
			}
		}
	}
	return false
}

// look gathers what an object is about.
func (d *Controller) look(obj *minik8s.DNS) seen {
	w := seen{d: d, byService: map[loop.Key][]*discoveryv1.EndpointSlice{}, byAddress: map[netip.Addr]*corev1.Service{}}
	for _, named := range servicesOf(obj) {
		if named.Namespace != "" {
			w.byService[named] = nil
		} else if a, err := netip.ParseAddr(named.Name); err == nil {
			w.byAddress[a] = nil
		}
	}
	if len(w.byAddress) > 0 {
		for _, svc := range d.services.List() {
			a, err := netip.ParseAddr(svc.Spec.ClusterIP)
			if _, wanted := w.byAddress[a]; err == nil && wanted {
				w.byAddress[a], w.byService[loop.Key{Namespace: svc.Namespace, Name: svc.Name}] = svc, nil
			}
		}
	}
	for _, s := range d.slices.List() {
		of := loop.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		if _, wanted := w.byService[of]; wanted {
			w.byService[of] = append(w.byService[of], s)
		}
	}
	return w
}

func (d *Controller) reconcile(ctx context.Context, key loop.Key) error {
	obj, ok := d.objects.Get(key.Namespace, key.Name)
	if !ok || obj.DeletionTimestamp != nil {
		return nil
	}
	before := apimeta.FindStatusCondition(obj.Status.Conditions, readyType)
	now := decide(obj, d.look(obj))
	now.LastTransitionTime = metav1.NewTime(clock.Now())
	upd := obj.DeepCopy()
	if !apimeta.SetStatusCondition(&upd.Status.Conditions, now) {
		return nil
	}
	_, err := d.client.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	d.tell(obj, before, now)
	return nil
}

// tell records what is missing, when that is another thing than before, and that it is there at last.
func (d *Controller) tell(obj *minik8s.DNS, before *metav1.Condition, now metav1.Condition) {
	switch {
	case now.Status == metav1.ConditionFalse && (before == nil || before.Status != now.Status || before.Message != now.Message):
		d.record.Event(obj, corev1.EventTypeWarning, now.Reason, "%s", now.Message)
	case now.Status == metav1.ConditionTrue && before != nil && before.Status != now.Status:
		d.record.Event(obj, corev1.EventTypeNormal, now.Reason, "%s", now.Message)
	}
}
