package handlers

import (
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/registry"
	"minik8s/internal/registry/decode"
)

// getScale reads the number of replicas of any kind that has one.
func (h *Handler) getScale(r *request) error {
	return r.answerScale(h.reg.GetScale(r.Request().Context(), r.ask))
}

func (r *request) answerScale(scale *autoscalingv1.Scale, err error) error {
	if err != nil {
		return err
	}
	return r.answerPlain(http.StatusOK, scale)
}

func (h *Handler) putScale(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	data, err := r.body()
	if err != nil {
		return err
	}
	given := &autoscalingv1.Scale{}
	if encoding.IsProtobuf(data) {
		if err := encoding.DecodeProtobuf(data, given); err != nil {
			return apierrors.NewBadRequest("the body is not a valid Scale in protobuf: " + err.Error())
		}
	} else {
		obj, warnings, err := decode.Manifest(registry.ScaleKind, nil, data, r.query.Get("fieldValidation"))
		if err != nil {
			return err
		}
		for _, w := range warnings {
			r.warn(w)
		}
		given = obj.(*autoscalingv1.Scale)
	}
	return r.answerScale(h.reg.UpdateScale(r.Request().Context(), r.ask, given, opts))
}

func (h *Handler) patchScale(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	patchType, data, err := r.patchBody()
	if err != nil {
		return err
	}
	return r.answerScale(h.reg.PatchScale(r.Request().Context(), r.ask, patchType, data, r.query.Get("fieldValidation"), opts))
}
