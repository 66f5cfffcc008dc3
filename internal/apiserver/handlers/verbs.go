package handlers

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/registry"
)

func (h *Handler) get(r *request) error {
	e, err := h.reg.Get(r.Request().Context(), r.ask)
	if err != nil {
		return err
	}
	return r.answer(http.StatusOK, e)
}

func (h *Handler) list(r *request) error {
	l, err := h.reg.List(r.Request().Context(), r.ask, r.list)
	if err != nil {
		return err
	}
	return h.answerList(r, l)
}

func (h *Handler) create(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	obj, err := h.decode(r)
	if err != nil {
		return err
	}
	e, err := h.reg.Create(r.Request().Context(), r.ask, obj, opts)
	if err != nil {
		return err
	}
	return r.answer(http.StatusCreated, e)
}

func (h *Handler) update(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	obj, err := h.decode(r)
	if err != nil {
		return err
	}
	e, err := h.reg.Update(r.Request().Context(), r.ask, obj, opts)
	if err != nil {
		return err
	}
	return r.answer(http.StatusOK, e)
}

func (h *Handler) patch(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	patchType, data, err := r.patchBody()
	if err != nil {
		return err
	}
	p := registry.Patch{Type: patchType, Data: data, Validation: r.query.Get("fieldValidation"), Force: isTrue(r.query.Get("force"))}
	e, created, err := h.reg.Patch(r.Request().Context(), r.ask, p, opts)
	if err != nil {
		return err
	}
	if created {
		return r.answer(http.StatusCreated, e)
	}
	return r.answer(http.StatusOK, e)
}

func (h *Handler) delete(r *request) error {
	opts, err := r.deleteOptions()
	if err != nil {
		return err
	}
	e, removed, err := h.reg.Delete(r.Request().Context(), r.ask, opts)
	if err != nil {
		return err
	}
	if w := h.reg.DeleteWarning(r.kind, opts); w != "" {
		r.warn(w)
	}
	if !removed || h.reg.Strategy(r.kind).ReturnDeleted {
		return r.answer(http.StatusOK, e)
	}
	st := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: r.name, Group: r.kind.Group, Kind: r.kind.Plural, UID: e.Object().GetUID()}}
	r.out.As = ""
	return r.answerObject(http.StatusOK, st)
}

func (h *Handler) deleteCollection(r *request) error {
	opts, err := r.deleteOptions()
	if err != nil {
		return err
	}
	l, err := h.reg.DeleteCollection(r.Request().Context(), r.ask, r.list, opts)
	if err != nil {
		return err
	}
	if w := h.reg.DeleteWarning(r.kind, opts); w != "" {
		r.warn(w)
	}
	return h.answerList(r, l)
}
