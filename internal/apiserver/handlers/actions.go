package handlers

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/registry"
)

// review returns a review (a SubjectAccessReview, for example) with its status filled in.
func (h *Handler) review(r *request) error {
	if err := r.negotiatePlain(); err != nil {
		return err
	}
	obj, err := h.decode(r)
	if err != nil {
		return err
	}
	answered, err := h.reg.Ask(r.Request().Context(), r.ask, obj)
	if err != nil {
		return err
	}
	return r.answerObject(http.StatusCreated, answered)
}

// token serves serviceaccounts/token: it makes a token, which is only in the answer and is not stored.
func (h *Handler) token(r *request) error {
	req := &authenticationv1.TokenRequest{}
	if err := r.decodeBody("TokenRequest", req); err != nil {
		return err
	}
	made, err := h.reg.Token(r.Request().Context(), r.ask, req)
	if err != nil {
		return err
	}
	return r.answerPlain(http.StatusCreated, made)
}

// evict serves pods/eviction: a deletion that a future version may refuse, to protect the pod's set.
func (h *Handler) evict(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	eviction := &policyv1.Eviction{}
	if err := r.decodeBody("Eviction", eviction); err != nil {
		return err
	}
	if err := h.reg.Evict(r.Request().Context(), r.ask, eviction, opts); err != nil {
		return err
	}
	return r.answerPlain(http.StatusCreated, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess, Code: http.StatusCreated})
}

// bind serves pods/binding, with which the scheduler gives a pod its node.
func (h *Handler) bind(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	b := &corev1.Binding{}
	if err := r.decodeBody("Binding", b); err != nil {
		return err
	}
	if b.Target.Name == "" || b.Target.Kind != "" && b.Target.Kind != "Node" {
		return apierrors.NewBadRequest("target: a Binding names a Node: {\"target\":{\"kind\":\"Node\",\"name\":...}}")
	}
	_, err = h.reg.Bind(r.Request().Context(), r.ask,
		registry.Binding{Node: b.Target.Name, UID: b.UID, Annotations: b.Annotations}, opts)
	if err != nil {
		return err
	}
	return r.answerObject(http.StatusCreated, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess, Code: http.StatusCreated})
}
