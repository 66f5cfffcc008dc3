package apiserver

import (
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/registry"
)

// scale serves the number of replicas of whatever kind has one.
func (s *Server) scale(r *request) error {
	ctx, user := r.Request().Context(), userOf(r)
	var scale *autoscalingv1.Scale
	var err error
	switch r.Request().Method {
	case http.MethodGet:
		scale, err = s.reg.GetScale(ctx, user, r.kind, r.namespace, r.name)
	case http.MethodPut:
		scale, err = s.putScale(r)
	case http.MethodPatch:
		scale, err = s.patchScale(r)
	default:
		return r.notAllowed()
	}
	if err != nil {
		return err
	}
	r.neg.as = "" // a Scale has no row in a table
	body, err := r.encodeObject(scale)
	if err != nil {
		return err
	}
	return r.send(http.StatusOK, body)
}

func (r *request) notAllowed() error {
	return apierrors.NewMethodNotSupported(r.kind.GR(), r.Request().Method)
}

func (s *Server) putScale(r *request) (*autoscalingv1.Scale, error) {
	opts, err := r.writeOptions()
	if err != nil {
		return nil, err
	}
	data, err := r.body()
	if err != nil {
		return nil, err
	}
	given := &autoscalingv1.Scale{}
	if hasMagic(data) {
		if err := decodeProtobuf(data, given); err != nil {
			return nil, apierrors.NewBadRequest("the body is not a valid Scale in protobuf: " + err.Error())
		}
	} else {
		obj, warnings, err := registry.Decode(registry.ScaleKind, nil, data, r.query.Get("fieldValidation"))
		if err != nil {
			return nil, err
		}
		for _, w := range warnings {
			r.warn(w)
		}
		given = obj.(*autoscalingv1.Scale)
	}
	return s.reg.UpdateScale(r.Request().Context(), userOf(r), r.kind, r.namespace, r.name, given, opts)
}

func (s *Server) patchScale(r *request) (*autoscalingv1.Scale, error) {
	opts, err := r.writeOptions()
	if err != nil {
		return nil, err
	}
	form, data, err := r.patchBody()
	if err != nil {
		return nil, err
	}
	return s.reg.PatchScale(r.Request().Context(), userOf(r), r.kind, r.namespace, r.name, form, data,
		r.query.Get("fieldValidation"), opts)
}
