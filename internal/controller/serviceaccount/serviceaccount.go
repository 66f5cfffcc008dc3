// Package serviceaccount gives every namespace what clients of Kubernetes expect to find there: the
// ServiceAccount "default" and the ConfigMap "kube-root-ca.crt" with the cluster's CA.
//
// It reads Namespaces, ServiceAccounts and ConfigMaps, and writes those two objects, also when
// somebody removes or changes them. roles runs it beside the master. It keeps nothing.
package serviceaccount

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
)

const (
	account = "default"
	rootCA  = "kube-root-ca.crt"
	caKey   = "ca.crt"
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
func New(c client.Interface, ca []byte, log *slog.Logger) *Controller {
	byName := func(name string) informer.Options {
		return informer.Options{Log: log, Fields: fields.OneTermEqualSelector("metadata.name", name)}
	}
	s := &Controller{client: c, ca: string(ca),
		namespaces: informer.New[*corev1.Namespace](c, api.Namespaces, informer.Options{Log: log}),
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
		switch {
		case now == nil:
			s.loop.Add(loop.Key{Name: old.Namespace})
		case old != nil:
			s.loop.Add(loop.Key{Name: now.Namespace})
		}
	})
	return s
}

// Run works until ctx ends.
func (s *Controller) Run(ctx context.Context, ready func()) error {
	go s.accounts.Run(ctx, func() {
		go s.cas.Run(ctx, func() { //nolint:errcheck // it returns when ctx ends
			go s.loop.Run(ctx, 2)
		})
	}) //nolint:errcheck // as above
	return s.namespaces.Run(ctx, ready)
}

func (s *Controller) reconcile(ctx context.Context, key loop.Key) error {
	ns, ok := s.namespaces.Get("", key.Name)
	if !ok || ns.DeletionTimestamp != nil {
		return nil
	}
	if _, ok := s.accounts.Get(ns.Name, account); !ok {
		_, err := s.client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: account}}, client.WriteOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: rootCA,
		Annotations: map[string]string{"kubernetes.io/description": "Contains a CA bundle that can be used to verify the API server."}},
		Data: map[string]string{caKey: s.ca}}
	have, ok := s.cas.Get(ns.Name, rootCA)
	var err error
	switch {
	case !ok:
		_, err = s.client.Create(ctx, want, client.WriteOptions{})
	case have.Data[caKey] != s.ca || len(have.Data) != 1:
		_, err = s.client.Update(ctx, want, client.WriteOptions{})
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
