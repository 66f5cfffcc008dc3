package registry

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/bootstrap"
)

// authenticateJoin returns the user of a join token. The error is 401 if the token is not valid.
func (r *Registry) authenticateJoin(ctx context.Context, t bootstrap.Token) (User, error) {
	e, err := r.read(ctx, api.Secrets, metav1.NamespaceSystem, bootstrap.SecretName(t.ID))
	if err != nil && !apierrors.IsNotFound(err) {
		return User{}, err
	}
	var secret *corev1.Secret
	if e != nil {
		secret, _ = e.Object().(*corev1.Secret)
	}
	stored, err := bootstrap.Check(t, secret, r.now())
	if err != nil {
		return User{}, apierrors.NewUnauthorized(err.Error())
	}
	return User{Name: bootstrap.User(t.ID), Groups: append([]string{bootstrap.Group, GroupAuthenticated}, stored.Groups...)}, nil
}
