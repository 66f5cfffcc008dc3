package handlers

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/registry/decode"
)

// The limits for large and slow bodies.
const (
	maxBody     = 3 << 20
	maxDrain    = 16 << 20 // of a body that is too large, so that its client can read the answer
	bodyTimeout = 30 * time.Second
)

// body reads the request's body, bounded in size and in time.
func (r *request) body() ([]byte, error) {
	rc := http.NewResponseController(r.Response())
	rc.SetReadDeadline(time.Now().Add(bodyTimeout)) //nolint:errcheck // some connections have no deadlines
	defer rc.SetReadDeadline(time.Time{})           //nolint:errcheck // as above
	limited := http.MaxBytesReader(r.Response(), r.Request().Body, maxBody)
	var data []byte
	var err error
	if n := r.Request().ContentLength; n > 0 && n <= maxBody {
		data = make([]byte, n)
		_, err = io.ReadFull(limited, data)
	} else {
		data, err = io.ReadAll(limited)
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || r.Request().ContentLength > maxBody {
		// A client that is still writing would see a broken connection instead of the answer.
		io.CopyN(io.Discard, r.Request().Body, maxDrain) //nolint:errcheck // best effort
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a body may have %d bytes", maxBody))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("the body could not be read: " + err.Error())
	}
	return data, nil
}

// decode reads the body as an object of the path's kind.
func (h *Handler) decode(r *request) (api.Object, error) {
	kind := r.served()
	data, err := r.body()
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, apierrors.NewBadRequest("the body is empty: send a " + r.kind.Kind + " in JSON, YAML or protobuf")
	}
	if encoding.IsProtobuf(data) {
		obj := kind.New()
		if err := encoding.DecodeProtobuf(data, obj); err != nil {
			return nil, apierrors.NewBadRequest("the body is not a valid " + kind.Kind + " in protobuf: " + err.Error())
		}
		obj.GetObjectKind().SetGroupVersionKind(kind.GVK())
		return obj, nil
	}
	var dialect func(map[string]any) ([]string, error)
	if r.form == nil {
		dialect = h.reg.Strategy(r.ask.Seen()).Dialect
	}
	obj, warnings, err := decode.Manifest(kind, dialect, data, r.query.Get("fieldValidation"))
	var strict *decode.StrictError
	if errors.As(err, &strict) {
		return nil, h.reg.Refuse(r.ask, obj, strict)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		r.warn(w)
	}
	return obj, nil
}

// decodeBody reads a body that requests an action and is not stored.
func (r *request) decodeBody(kind string, into runtime.Object) error {
	data, err := r.body()
	if err != nil {
		return err
	}
	if encoding.IsProtobuf(data) {
		err = encoding.DecodeProtobuf(data, into)
	} else {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		return notValid(kind, data, into, err)
	}
	return nil
}

// notValid returns the error (400) for a body that could not be read, with each mistake and its place.
func notValid(kind string, data []byte, into runtime.Object, err error) error {
	text := err.Error()
	if asJSON, bad := yaml.YAMLToJSON(data); bad == nil && !encoding.IsProtobuf(data) { // JSON is left unchanged
		text = decode.Explain(asJSON, into, err)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the body is not a valid %s: %s", kind, text))
}

// patchBody returns the patch type and the patch as JSON, converted from YAML if necessary.
func (r *request) patchBody() (types.PatchType, []byte, error) {
	data, err := r.body()
	if err != nil {
		return "", nil, err
	}
	ct, _, _ := mime.ParseMediaType(r.Request().Header.Get("Content-Type")) //nolint:errcheck // the registry refuses an unknown type
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
