package serviceaccount

import (
	"context"
	"errors"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

const (
	account = "default"
	rootCA  = "kube-root-ca.crt"
	caKey   = "ca.crt"

	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

// Controller is the service account controller.
type Controller struct {
	client     client.Interface
	ca         string
	namespaces *informer.Informer[*corev1.Namespace]
	accounts   *informer.Informer[*corev1.ServiceAccount]
	cas        *informer.Informer[*corev1.ConfigMap]
	loop       *loop.Loop
}

// New makes the controller; ca is the cluster's CA in PEM.
func New(c client.Interface, views *informer.Views, ca []byte, log *slog.Logger) *Controller {
	byName := func(name string) informer.Options {
		return informer.Options{Views: views, Log: log, Fields: fields.OneTermEqualSelector("metadata.name", name)}
	}
	s := &Controller{client: c, ca: string(ca),
		namespaces: informer.New[*corev1.Namespace](c, api.Namespaces, informer.Options{Views: views, Log: log}),
		accounts:   informer.New[*corev1.ServiceAccount](c, api.ServiceAccounts, byName(account)),
		cas:        informer.New[*corev1.ConfigMap](c, api.ConfigMaps, byName(rootCA)),
	}
	s.loop = loop.New("serviceaccount", log, s.reconcile)
	s.namespaces.OnChange(func(_, now *corev1.Namespace) {
		if now != nil {
			s.loop.Add(loop.Key{Name: now.Name})
		}
	})
	s.accounts.OnChange(func(old, now *corev1.ServiceAccount) {
		if now == nil {
			s.loop.Add(loop.Key{Name: old.Namespace})
		}
	})
	s.cas.OnChange(func(old, now *corev1.ConfigMap) {
		if now == nil {
			now = old
		}
		s.loop.Add(loop.Key{Name: now.Namespace}) // also for a new one: another client may have created it with other content
	})
	return s
}

// Run works until ctx ends.
func (s *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{s.accounts, s.cas, s.namespaces}, s.loop.Workers(2))
}

// errUnseen makes the loop retry a namespace until the informers show what was created in it. An object that is
// created and deleted while a watch is broken is never shown, so no event would report its deletion.
var errUnseen = errors.New("created, but the watch has not shown it yet")

func (s *Controller) reconcile(ctx context.Context, key loop.Key) error {
	ns, ok := s.namespaces.Get("", key.Name)
	if !ok || ns.DeletionTimestamp != nil {
		return nil
	}
	var err error
	if _, ok := s.accounts.Get(ns.Name, account); !ok {
		err = s.make(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: account}})
	}
	return errors.Join(err, s.publish(ctx, ns.Name))
}

// make creates an object that the informers do not show. It always returns an error, so that the namespace is
// retried.
func (s *Controller) make(ctx context.Context, obj api.Object) error {
	if _, err := s.client.Create(ctx, obj, client.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return errUnseen
}

// publish creates the CA's ConfigMap, or restores its data; metadata that others added stays.
func (s *Controller) publish(ctx context.Context, ns string) error {
	have, ok := s.cas.Get(ns, rootCA)
	if !ok {
		return s.make(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: rootCA,
			Annotations: map[string]string{descriptionKey: description}}, Data: map[string]string{caKey: s.ca}})
	}
	if have.Data[caKey] == s.ca && len(have.Data) == 1 && have.Annotations[descriptionKey] != "" {
		return nil
	}
	upd := have.DeepCopy()
	upd.Data = map[string]string{caKey: s.ca}
	metav1.SetMetaDataAnnotation(&upd.ObjectMeta, descriptionKey, description)
	_, err := s.client.Update(ctx, upd, client.WriteOptions{})
	return err
}
