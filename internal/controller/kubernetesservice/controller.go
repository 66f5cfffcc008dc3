package kubernetesservice

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"context"
	"log/slog"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Controller is the controller.
type Controller struct {
	client    client.Interface
	service   *corev1.Service
	nodes     *informer.Informer[*corev1.Node]
	services  *informer.Informer[*corev1.Service]
	endpoints *informer.Informer[*corev1.Endpoints]
	slices    *informer.Informer[*discoveryv1.EndpointSlice]
	loop      *loop.Loop
}

// key is the loop's only key.
var key = loop.Key{Namespace: metav1.NamespaceDefault, Name: api.KubernetesService}

// New makes the controller; address and target are as in Service.
func New(c client.Interface, views *informer.Views, address netip.Addr, target int32, log *slog.Logger) *Controller {
	k := &Controller{client: c, service: Service(address, target)}
	wake := func() { k.loop.Add(key) }
	k.loop = loop.New("kubernetesservice", log, k.reconcile)
	all := informer.Options{Views: views, Log: log}
	named := all
	named.Namespace, named.Fields = key.Namespace, fields.OneTermEqualSelector("metadata.name", key.Name)
	k.nodes = informer.New[*corev1.Node](c, api.Nodes, all)
	k.nodes.OnChange(func(old, now *corev1.Node) {
		if changedMaster(old, now) {
			wake()
		}
	})
	k.services = informer.New[*corev1.Service](c, api.Services, named)
	k.services.OnChange(func(_, _ *corev1.Service) { wake() })
	k.endpoints = informer.New[*corev1.Endpoints](c, api.Endpoints, named)
	k.endpoints.OnChange(func(_, _ *corev1.Endpoints) { wake() })
	k.slices = informer.New[*discoveryv1.EndpointSlice](c, api.EndpointSlices, all)
	k.slices.OnChange(func(old, now *discoveryv1.EndpointSlice) {
		if ours(old) || ours(now) {
			wake()
		}
	})
	return k
}

func ours(s *discoveryv1.EndpointSlice) bool {
	return s != nil && s.Namespace == key.Namespace && s.Labels[discoveryv1.LabelManagedBy] == keeper
}

// Run works until ctx ends.
func (k *Controller) Run(ctx context.Context, ready func()) error {
	k.loop.Add(key)
	return loop.Drive(ctx, ready, []supervise.Source{k.nodes, k.services, k.endpoints, k.slices}, k.loop.Workers(1))
}

// reconcile reads what it may write anew: it runs seldom, and then a slow watch can mislead nobody.
func (k *Controller) reconcile(ctx context.Context, _ loop.Key) error {
	if _, ok := k.services.Get(key.Namespace, key.Name); !ok {
		if _, err := k.client.Create(ctx, k.service.DeepCopy(), client.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	heard, silent := masters(k.nodes.List())
	if len(heard) == 0 {
		if heard = silent; len(heard) == 0 {
			return nil // no master has announced itself yet
		}
	}
	endpoints, slices := wanted(heard)
	for _, s := range slices {
		if err := k.keep(ctx, s); err != nil {
			return err
		}
	}
	if err := k.keep(ctx, endpoints); err != nil {
		return err
	}
	return k.removeOthers(ctx, slices)
}

// keep makes an object what it is to be.
func (k *Controller) keep(ctx context.Context, want api.Object) error {
	have, err := k.client.Get(ctx, client.KeyOf(want))
	if apierrors.IsNotFound(err) {
		_, err = k.client.Create(ctx, want, client.WriteOptions{})
		return err
	}
	if err != nil {
		return err
	}
	upd := have.DeepCopyObject().(api.Object)
	upd.SetLabels(want.GetLabels())
	switch want := want.(type) {
	case *corev1.Endpoints:
		upd.(*corev1.Endpoints).Subsets = want.Subsets
	case *discoveryv1.EndpointSlice:
		s := upd.(*discoveryv1.EndpointSlice)
		s.Ports, s.Endpoints = want.Ports, want.Endpoints
	}
	if apiequality.Semantic.DeepEqual(have, upd) {
		return nil
	}
	_, err = k.client.Update(ctx, upd, client.WriteOptions{})
	return err
}

// removeOthers deletes our slices of ports that no master has any more.
func (k *Controller) removeOthers(ctx context.Context, wanted []*discoveryv1.EndpointSlice) error {
next:
	for _, s := range k.slices.List() {
		if !ours(s) {
			continue
		}
		for _, w := range wanted {
			if w.Name == s.Name {
				continue next
			}
		}
		_, err := k.client.Delete(ctx, client.KeyOf(s), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}
