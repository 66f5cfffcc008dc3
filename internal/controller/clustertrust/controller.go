package clustertrust

import (
	"context"
	"log/slog"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Controller is the controller.
type Controller struct {
	client client.Interface
	trust  Trust
	maps   *informer.Informer[*corev1.ConfigMap]
	loop   *loop.Loop
}

// key is the loop's only key.
var key = loop.Key{Namespace: metav1.NamespaceSystem, Name: Name}

// New makes the controller.
func New(c client.Interface, trust Trust, log *slog.Logger) *Controller {
	k := &Controller{client: c, trust: trust}
	k.loop = loop.New("clustertrust", log, k.reconcile)
	k.maps = informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Namespace: key.Namespace,
		Fields: fields.OneTermEqualSelector("metadata.name", key.Name), Log: log})
	k.maps.OnChange(func(_, _ *corev1.ConfigMap) { k.loop.Add(key) })
	return k
}

// Run works until ctx ends.
func (k *Controller) Run(ctx context.Context, ready func()) error {
	k.loop.Add(key)
	return loop.Drive(ctx, ready, []supervise.Source{k.maps}, k.loop.Workers(1))
}

// reconcile reads the ConfigMap anew: it runs seldom, and then a slow watch can mislead nobody.
func (k *Controller) reconcile(ctx context.Context, _ loop.Key) error {
	have, err := client.Get[*corev1.ConfigMap](ctx, k.client, client.Key{Kind: api.ConfigMaps, Namespace: key.Namespace, Name: key.Name})
	if apierrors.IsNotFound(err) {
		_, err = k.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Data: merge(nil, k.trust, clock.Now())}, client.WriteOptions{})
		if apierrors.IsAlreadyExists(err) { // another master's; what this one has goes there too
			k.loop.Add(key)
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	want := merge(have.Data, k.trust, clock.Now())
	if maps.Equal(have.Data, want) {
		return nil
	}
	upd := have.DeepCopy()
	upd.Data = want
	if _, err = k.client.Update(ctx, upd, client.WriteOptions{}); apierrors.IsConflict(err) {
		k.loop.Add(key)
		return nil
	}
	return err
}
