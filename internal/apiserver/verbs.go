package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/registry"
)

func (s *Server) get(r *request) error {
	e, err := s.reg.Get(r.Request().Context(), r.ask)
	if err != nil {
		return err
	}
	return r.answer(http.StatusOK, e)
}

func (s *Server) list(r *request) error {
	l, err := s.reg.List(r.Request().Context(), r.ask, r.list)
	if err != nil {
		return err
	}
	return s.answerList(r, l)
}

func (s *Server) create(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	obj, err := s.decode(r)
	if err != nil {
		return err
	}
	e, err := s.reg.Create(r.Request().Context(), r.ask, obj, opts)
	if err != nil {
		return err
	}
	return r.answer(http.StatusCreated, e)
}

func (s *Server) update(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	obj, err := s.decode(r)
	if err != nil {
		return err
	}
	e, err := s.reg.Update(r.Request().Context(), r.ask, obj, opts)
	if err != nil {
		return err
	}
	return r.answer(http.StatusOK, e)
}

func (s *Server) patch(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	form, data, err := r.patchBody()
	if err != nil {
		return err
	}
	p := registry.Patch{Type: form, Data: data, Validation: r.query.Get("fieldValidation"), Force: isTrue(r.query.Get("force"))}
	e, created, err := s.reg.Patch(r.Request().Context(), r.ask, p, opts)
	if err != nil {
		return err
	}
	if created {
		return r.answer(http.StatusCreated, e)
	}
	return r.answer(http.StatusOK, e)
}

// patchBody is a patch with its form, as JSON also where it came as YAML.
func (r *request) patchBody() (types.PatchType, []byte, error) {
	data, err := r.body()
	if err != nil {
		return "", nil, err
	}
	ct, _, _ := mime.ParseMediaType(r.Request().Header.Get("Content-Type")) //nolint:errcheck // an odd type is refused by the registry
	if !looksJSON(data) && ct != string(types.JSONPatchType) {
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return "", nil, apierrors.NewBadRequest("the patch is not valid: " + err.Error())
		}
	}
	return types.PatchType(ct), data, nil
}

func looksJSON(b []byte) bool {
	t := strings.TrimSpace(string(b[:min(len(b), 64)]))
	return t != "" && (t[0] == '{' || t[0] == '[')
}

func (s *Server) delete(r *request) error {
	opts, err := r.deleteOptions()
	if err != nil {
		return err
	}
	e, gone, err := s.reg.Delete(r.Request().Context(), r.ask, opts)
	if err != nil {
		return err
	}
	if w := s.reg.DeleteWarning(r.kind, opts); w != "" {
		r.warn(w)
	}
	if !gone || r.kind == api.Pods { // as Kubernetes: pods are always shown
		return r.answer(http.StatusOK, e)
	}
	st := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: r.name, Group: r.kind.Group, Kind: r.kind.Plural, UID: e.Object().GetUID()}}
	r.neg.as = ""
	return r.answerObject(http.StatusOK, st)
}

func (s *Server) deleteCollection(r *request) error {
	opts, err := r.deleteOptions()
	if err != nil {
		return err
	}
	l, err := s.reg.DeleteCollection(r.Request().Context(), r.ask, r.list, opts)
	if err != nil {
		return err
	}
	if w := s.reg.DeleteWarning(r.kind, opts); w != "" {
		r.warn(w)
	}
	return s.answerList(r, l)
}

// decode reads the body as an object of the path's kind.
func (s *Server) decode(r *request) (api.Object, error) {
	form := r.form()
	data, err := r.body()
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, apierrors.NewBadRequest("the body is empty: send a " + r.kind.Kind + " in JSON, YAML or protobuf")
	}
	if hasMagic(data) {
		obj := form.New()
		if err := decodeProtobuf(data, obj); err != nil {
			return nil, apierrors.NewBadRequest("the body is not a valid " + form.Kind + " in protobuf: " + err.Error())
		}
		obj.GetObjectKind().SetGroupVersionKind(form.GVK())
		return obj, nil
	}
	obj, warnings, err := registry.Decode(form, s.reg.Strategy(r.kind).Dialect, data, r.query.Get("fieldValidation"))
	var strict *registry.StrictError
	if errors.As(err, &strict) {
		return nil, s.reg.Refuse(r.ask, obj, strict)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		r.warn(w)
	}
	return obj, nil
}

func hasMagic(data []byte) bool { return len(data) >= 4 && string(data[:4]) == string(protobufMagic) }

func decodeProtobuf(data []byte, into runtime.Object) error {
	_, _, err := protobufSerializer.Decode(data, nil, into)
	return err
}

// deleteOptions come in the body, in the query, or not at all.
func (r *request) deleteOptions() (*metav1.DeleteOptions, error) {
	opts := &metav1.DeleteOptions{}
	data, err := r.body()
	if err != nil {
		return nil, err
	}
	switch {
	case hasMagic(data):
		err = decodeProtobuf(data, opts)
	case len(data) > 0 && looksJSON(data):
		err = json.Unmarshal(data, opts)
	case len(data) > 0:
		err = yaml.Unmarshal(data, opts)
	}
	if err != nil {
		return nil, notValid("DeleteOptions", data, opts, err)
	}
	if s := r.query.Get("gracePeriodSeconds"); s != "" {
		var n int64
		if _, err := fmt.Sscan(s, &n); err != nil {
			return nil, apierrors.NewBadRequest("gracePeriodSeconds: not a number of seconds: " + s)
		}
		opts.GracePeriodSeconds = &n
	}
	if s := r.query.Get("orphanDependents"); s != "" {
		orphan, err := strconv.ParseBool(s)
		if err != nil {
			return nil, apierrors.NewBadRequest("orphanDependents: neither true nor false: " + s)
		}
		//lint:ignore SA1019 old clients send it
		opts.OrphanDependents = &orphan
	}
	if s := r.query.Get("propagationPolicy"); s != "" {
		p := metav1.DeletionPropagation(s)
		opts.PropagationPolicy = &p
	}
	if d := r.query["dryRun"]; len(d) > 0 {
		opts.DryRun = d
	}
	for _, d := range opts.DryRun {
		if d != metav1.DryRunAll {
			return nil, apierrors.NewBadRequest("dryRun: " + d + " is not served, only All")
		}
	}
	return opts, nil
}

// bind is pods/binding: the scheduler's answer.
func (s *Server) bind(r *request) error {
	opts, err := r.writeOptions()
	if err != nil {
		return err
	}
	data, err := r.body()
	if err != nil {
		return err
	}
	b := &corev1.Binding{}
	if hasMagic(data) {
		err = decodeProtobuf(data, b)
	} else {
		err = yaml.Unmarshal(data, b)
	}
	if err != nil {
		return notValid("Binding", data, b, err)
	}
	if b.Target.Name == "" || b.Target.Kind != "" && b.Target.Kind != "Node" {
		return apierrors.NewBadRequest("target: a Binding names a Node: {\"target\":{\"kind\":\"Node\",\"name\":...}}")
	}
	_, err = s.reg.Bind(r.Request().Context(), r.ask,
		registry.Binding{Node: b.Target.Name, UID: b.UID, Annotations: b.Annotations}, opts)
	if err != nil {
		return err
	}
	return r.answerObject(http.StatusCreated, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess, Code: http.StatusCreated})
}
