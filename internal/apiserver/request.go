package apiserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// request is a path below a group and version, taken apart:
//
//	RESOURCE [/NAME [/SUB]], or namespaces/NS/RESOURCE [/NAME [/SUB]]
//
// Where the subresource takes a path, that follows.
type request struct {
	echo.Context
	kind            *api.Kind
	view            *api.Kind // the form in which the client sees the kind; nil: as it is stored
	namespace, name string
	sub             string
	path            string // what follows the subresource, with its first slash, escaped as the client has it
	query           url.Values
	neg             negotiated
	list            registry.ListOptions // of a collection, and of a watch
	ask             *registry.Request    // what has been authorised
}

// parse finds what a path means; NotFound if it means nothing here.
func (s *Server) parse(c echo.Context) (*request, error) {
	group, version := c.Param("group"), c.Param("version")
	if version == "" {
		version = "v1"
	}
	parts := strings.Split(strings.Trim(c.Param("*"), "/"), "/")
	all := len(parts)
	r := &request{Context: c, query: c.QueryParams()}
	if len(parts) > 0 && parts[0] == "watch" { // the old form of ?watch=1
		parts = parts[1:]
		r.query.Set("watch", "true")
	}
	if len(parts) >= 3 && parts[0] == "namespaces" && !isNamespaceSub(parts[2]) {
		var err error
		if r.namespace, err = url.PathUnescape(parts[1]); err != nil || r.namespace == "" {
			return nil, echo.ErrNotFound
		}
		parts = parts[2:]
	}
	before, below := all-len(parts), len(parts) > 3
	parts = parts[:min(len(parts), 3)]
	for i, p := range parts {
		u, err := url.PathUnescape(p)
		if err != nil || u == "" {
			return nil, echo.ErrNotFound
		}
		parts[i] = u
	}
	if len(parts) == 0 {
		return nil, echo.ErrNotFound
	}
	r.kind = s.reg.Kinds().ByResource(schema.GroupVersionResource{Group: group, Version: version, Resource: parts[0]})
	if r.kind == nil || r.namespace != "" && !r.kind.Namespaced {
		return nil, echo.ErrNotFound
	}
	if r.kind.View != nil {
		r.kind, r.view = r.kind.View.Of, r.kind
	}
	r.neg = negotiateFor(r.form(), c.Request().Header.Get("Accept"))
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.sub = parts[2]
	}
	if sub := r.kind.Subresource(r.sub); sub != nil && sub.Path {
		r.path = pathAfter(c, before+len(parts))
	} else if below {
		return nil, echo.ErrNotFound
	}
	if r.kind.Namespaced && r.namespace == "" && r.name != "" {
		return nil, echo.ErrNotFound
	}
	return r, nil
}

// pathAfter is what follows the first n segments below a group and version.
func pathAfter(c echo.Context, n int) string {
	param := c.Param("*")
	n += len(param) - len(strings.TrimLeft(param, "/")) + strings.Count(strings.TrimSuffix(c.Path(), "*"), "/")
	rest := c.Request().URL.EscapedPath()
	for i := 0; ; i++ {
		at := strings.IndexByte(rest, '/')
		if at < 0 {
			return ""
		}
		if rest = rest[at:]; i == n-1 {
			return rest
		}
		rest = rest[1:]
	}
}

// form is the kind as the client sees it.
func (r *request) form() *api.Kind {
	if r.view != nil {
		return r.view
	}
	return r.kind
}

// shown is an entry as the client sees it.
func (r *request) shown(e *registry.Entry) (*registry.Entry, error) {
	if r.view == nil {
		return e, nil
	}
	return e.In(r.view)
}

func isNamespaceSub(s string) bool { return s == "status" || api.Namespaces.Subresource(s) != nil }

func isTrue(s string) bool { return s == "true" || s == "1" }

// body reads the request's body, bounded in size and in time.
func (r *request) body() ([]byte, error) {
	rc := http.NewResponseController(r.Response())
	rc.SetReadDeadline(time.Now().Add(bodyTimeout)) //nolint:errcheck // where it cannot be set there is none
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
		// A client that still writes would see a broken connection instead of the answer.
		io.CopyN(io.Discard, r.Request().Body, maxDrain) //nolint:errcheck // a courtesy
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a body may have %d bytes", maxBody))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("the body could not be read: " + err.Error())
	}
	return data, nil
}

// writeOptions reads dryRun, and collects warnings as headers.
func (r *request) writeOptions() (registry.WriteOptions, error) {
	o := registry.WriteOptions{Warn: r.warn, Manager: r.query.Get("fieldManager")}
	apply := strings.HasPrefix(r.Request().Header.Get("Content-Type"), string(types.ApplyPatchType))
	if o.Manager == "" && !apply { // the program's name, as in Kubernetes
		o.Manager, _, _ = strings.Cut(r.Request().UserAgent(), "/")
		o.Manager = strings.Map(func(c rune) rune {
			if !unicode.IsPrint(c) {
				return -1
			}
			return c
		}, o.Manager[:min(len(o.Manager), metav1validation.FieldManagerMaxLength)])
	}
	for _, d := range r.query["dryRun"] {
		if d != metav1.DryRunAll {
			return o, apierrors.NewBadRequest("dryRun: " + strconv.Quote(d) + " is not served, only All")
		}
		o.DryRun = true
	}
	switch r.query.Get("fieldValidation") {
	case "", metav1.FieldValidationIgnore, metav1.FieldValidationWarn, metav1.FieldValidationStrict:
	default:
		return o, apierrors.NewBadRequest("fieldValidation: " + strconv.Quote(r.query.Get("fieldValidation")) + " is none of Ignore, Warn, Strict")
	}
	return o, nil
}

// maxWarning bounds one Warning header.
const maxWarning = 1000

func (r *request) warn(msg string) {
	if len(msg) > maxWarning {
		msg = msg[:maxWarning]
	}
	r.Response().Header().Add("Warning", "299 - "+strconv.Quote(msg))
}

// listOptions reads the query of a list, watch or deletecollection.
func (r *request) listOptions() (registry.ListOptions, error) {
	o := registry.ListOptions{Namespace: r.namespace, Continue: r.query.Get("continue"),
		ResourceVersion: r.query.Get("resourceVersion"),
		Match:           metav1.ResourceVersionMatch(r.query.Get("resourceVersionMatch"))}
	var err error
	if s := r.query.Get("labelSelector"); s != "" {
		if o.Labels, err = labels.Parse(s); err != nil {
			return o, apierrors.NewBadRequest("labelSelector: " + err.Error())
		}
	}
	if s := r.query.Get("fieldSelector"); s != "" {
		if o.Fields, err = fields.ParseSelector(s); err != nil {
			return o, apierrors.NewBadRequest("fieldSelector: " + err.Error())
		}
	}
	if o.Fields, err = registry.StoredFields(r.view, o.Fields); err != nil {
		return o, apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	if r.name != "" { // a watch of one object
		one := fields.OneTermEqualSelector("metadata.name", r.name)
		if o.Fields != nil {
			one = fields.AndSelectors(o.Fields, one)
		}
		o.Fields = one
	}
	if s := r.query.Get("limit"); s != "" {
		if o.Limit, err = strconv.ParseInt(s, 10, 64); err != nil || o.Limit < 0 {
			return o, apierrors.NewBadRequest("limit: " + strconv.Quote(s) + " is not a number of objects")
		}
	}
	return o, nil
}
