package tokencleaner

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/bootstrap"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Controller is the controller.
type Controller struct {
	client  client.Interface
	secrets *informer.Informer[*corev1.Secret]
	loop    *loop.Loop
	now     func() time.Time
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, log *slog.Logger) *Controller {
	s := &Controller{client: c, now: clock.Now, secrets: informer.New[*corev1.Secret](c, api.Secrets, informer.Options{Views: views, Log: log,
		Namespace: metav1.NamespaceSystem, Fields: fields.OneTermEqualSelector("type", string(corev1.SecretTypeBootstrapToken))})}
	s.loop = loop.New("tokencleaner", log, s.reconcile)
	s.secrets.OnChange(func(_, now *corev1.Secret) {
		if now != nil {
			s.loop.Add(loop.Key{Namespace: now.Namespace, Name: now.Name})
		}
	})
	return s
}

// Run works until ctx ends.
func (s *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{s.secrets}, s.loop.Workers(1))
}

func (s *Controller) reconcile(ctx context.Context, key loop.Key) error {
	secret, ok := s.secrets.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	t, ok := bootstrap.FromSecret(secret)
	if !ok || t.Expires.IsZero() {
		return nil
	}
	if left := t.Expires.Sub(s.now()); left > 0 {
		s.loop.AddAfter(key, left)
		return nil
	}
	// One whose expiration was changed since is not this version.
	_, err := s.client.Delete(ctx, client.KeyOf(secret), &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
