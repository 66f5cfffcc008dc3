package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// act serves the subresources that do something: a binding, an eviction, a token. The answer is what was made, or
// that it was done.
func (h *Handler) act(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	action := h.reg.Strategy(r.kind).Subresources[r.sub].Action
	if action == nil {
		return echo.ErrNotFound
	}
	body := action.Body()
	if err := r.decodeBody(r.kind.Subresource(r.sub).Kind, body); err != nil {
		return err
	}
	answer, err := h.reg.Act(r.Request().Context(), r.ask, body, opts)
	if err != nil {
		return err
	}
	if answer == nil {
		answer = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusSuccess, Code: http.StatusCreated}
	}
	return r.answerPlain(http.StatusCreated, answer)
}
