package servicecidr

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Controller is the controller.
type Controller struct {
	client   client.Interface
	cidrs    *informer.Informer[*networkingv1.ServiceCIDR]
	services *informer.Informer[*corev1.Service]
	dnses    *informer.Informer[*minik8s.DNS]
	// kept are the IPAddresses that no Service or DNS object implies.
	kept *informer.Informer[*networkingv1.IPAddress]
	loop *loop.Loop
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, log *slog.Logger) *Controller {
	all := informer.Options{Views: views, Log: log}
	made := informer.Options{Log: log, Labels: notImplied()}
	s := &Controller{client: c,
		cidrs:    informer.New[*networkingv1.ServiceCIDR](c, api.ServiceCIDRs, all),
		services: informer.New[*corev1.Service](c, api.Services, all),
		dnses:    informer.New[*minik8s.DNS](c, api.DNSes, all),
		kept:     informer.New[*networkingv1.IPAddress](c, api.IPAddresses, made),
	}
	s.loop = loop.New("servicecidr", log, s.reconcile)
	s.cidrs.OnChange(func(_, now *networkingv1.ServiceCIDR) {
		if now != nil {
			s.loop.Add(loop.Key{Name: now.Name})
		}
		s.wake() // what this one covers holds no other
	})
	s.services.OnChange(func(old, now *corev1.Service) {
		if old == nil || now == nil || api.ServiceAddress(old) != api.ServiceAddress(now) { // a new one, too: it may be seen after the range's end was asked for
			s.wake()
		}
	})
	s.dnses.OnChange(func(old, now *minik8s.DNS) {
		if old == nil || now == nil || api.ServiceAddress(old) != api.ServiceAddress(now) {
			s.wake()
		}
	})
	s.kept.OnChange(func(_, _ *networkingv1.IPAddress) { s.wake() })
	return s
}

// notImplied selects the IPAddresses that people have made.
func notImplied() labels.Selector {
	r, err := labels.NewRequirement(networkingv1.LabelManagedBy, selection.NotIn, []string{api.AddressManager})
	if err != nil {
		panic(err) // it is a constant
	}
	return labels.NewSelector().Add(*r)
}

// wake queues the ServiceCIDRs that wait for addresses.
func (s *Controller) wake() {
	for _, cidr := range s.cidrs.List() {
		if cidr.DeletionTimestamp != nil {
			s.loop.Add(loop.Key{Name: cidr.Name})
		}
	}
}

// Run works until ctx ends.
func (s *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{s.services, s.dnses, s.kept, s.cidrs}, s.loop.Workers(1))
}

// world is what a decision is made of. kept are the IPAddresses that no Service or DNS object implies.
type world struct {
	cidrs    []*networkingv1.ServiceCIDR
	services []*corev1.Service
	dnses    []*minik8s.DNS
	kept     []*networkingv1.IPAddress
}

// seen is the world as the informers show it.
func (s *Controller) seen() *world {
	return &world{s.cidrs.List(), s.services.List(), s.dnses.List(), s.kept.List()}
}

// asked is the world as the API has it now.
func (s *Controller) asked(ctx context.Context) (w *world, err error) {
	w = &world{}
	if w.cidrs, _, err = client.All[*networkingv1.ServiceCIDR](ctx, s.client, api.ServiceCIDRs, client.ListOptions{}); err != nil {
		return nil, err
	}
	if w.services, _, err = client.All[*corev1.Service](ctx, s.client, api.Services, client.ListOptions{}); err != nil {
		return nil, err
	}
	if w.dnses, _, err = client.All[*minik8s.DNS](ctx, s.client, api.DNSes, client.ListOptions{}); err != nil {
		return nil, err
	}
	if w.kept, _, err = client.All[*networkingv1.IPAddress](ctx, s.client, api.IPAddresses, client.ListOptions{Labels: notImplied()}); err != nil {
		return nil, err
	}
	return w, nil
}

// inUse are the addresses that somebody has.
func (w *world) inUse() (out []held) {
	add := func(addr netip.Addr, kind *api.Kind, obj api.Object) {
		if addr.IsValid() {
			by := kind.Singular + " "
			if kind.Namespaced {
				by += obj.GetNamespace() + "/"
			}
			out = append(out, held{addr, by + obj.GetName()})
		}
	}
	for _, svc := range w.services {
		add(api.ServiceAddress(svc), api.Services, svc)
	}
	for _, d := range w.dnses {
		add(api.ServiceAddress(d), api.DNSes, d)
	}
	for _, a := range w.kept {
		if addr, err := netip.ParseAddr(a.Name); err == nil {
			add(addr, api.IPAddresses, a)
		}
	}
	return out
}

func (s *Controller) reconcile(ctx context.Context, key loop.Key) error {
	cidr, ok := s.cidrs.Get("", key.Name)
	if !ok {
		return nil
	}
	var by []string
	if cidr.DeletionTimestamp != nil {
		by = users(cidr, s.seen())
		if len(by) == 0 { // what got an address just before the deletion may not be seen yet
			now, err := s.asked(ctx)
			if err != nil {
				return err
			}
			if by = users(cidr, now); len(by) == 0 {
				return s.release(ctx, cidr)
			}
		}
	}
	now := condition(cidr, by)
	now.LastTransitionTime = metav1.NewTime(clock.Now())
	upd := cidr.DeepCopy()
	if !apimeta.SetStatusCondition(&upd.Status.Conditions, now) {
		return nil
	}
	_, err := s.client.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource})
	return gone(err)
}

// release lets a ServiceCIDR go.
func (s *Controller) release(ctx context.Context, cidr *networkingv1.ServiceCIDR) error {
	i := slices.Index(cidr.Finalizers, api.ServiceCIDRFinalizer)
	if i < 0 {
		return nil
	}
	upd := cidr.DeepCopy()
	upd.Finalizers = slices.Delete(upd.Finalizers, i, i+1)
	_, err := s.client.Update(ctx, upd, client.WriteOptions{})
	return gone(err)
}

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
