package apiserver

import (
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/registry"
)

// answer sends one object in the form the client asked for.
func (r *request) answer(code int, e *registry.Entry) error {
	body, err := r.appendEntry(nil, e, true)
	if err != nil {
		return err
	}
	return r.send(code, body)
}

// answerObject sends what is no stored object.
func (r *request) answerObject(code int, obj runtime.Object) error {
	body, err := r.appendObject(nil, obj)
	if err != nil {
		return err
	}
	return r.send(code, body)
}

// send sends a body that is JSON, or protobuf where that was asked for.
func (r *request) send(code int, body []byte) error {
	switch r.neg.format {
	case yamlFormat:
		y, err := toYAML(body)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		body = y
	case jsonFormat:
		body = append(body, '\n')
	}
	h := r.Response().Header()
	h.Set("Content-Type", r.neg.contentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-cache, private")
	r.Response().WriteHeader(code)
	_, err := r.Response().Write(body)
	return err
}
