package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
)

// ListOptions selects objects. Namespace and Fields are those of the request, where there is one.
type ListOptions struct {
	Namespace string // empty: all
	Labels    labels.Selector
	Fields    fields.Selector
	Limit     int64
	Continue  string
	// ResourceVersion and Match are as in Kubernetes' list options.
	ResourceVersion string
	Match           metav1.ResourceVersionMatch
}

// List is a page of entries at one revision.
type List struct {
	Kind      *api.Kind
	Entries   []*Entry
	Revision  int64
	Continue  string
	Remaining *int64
}

// Get is one object in its newest version.
func (r *Registry) Get(ctx context.Context, q *Request) (*Entry, error) {
	if err := r.authorizeAs(ctx, "get", q); err != nil {
		return nil, err
	}
	return r.read(ctx, q.Kind, q.Namespace, q.Name)
}

// Behind is the object below which a request asks for something that is no object: the node of a pod's log.
func (r *Registry) Behind(ctx context.Context, q *Request) (*Entry, error) {
	if err := r.Authorize(ctx, q); err != nil {
		return nil, err
	}
	return r.read(ctx, q.Kind, q.Namespace, q.Name)
}

// List is every object that opts selects, at one revision that is not older than the newest write
// acknowledged before the call.
func (r *Registry) List(ctx context.Context, q *Request, opts ListOptions) (*List, error) {
	if err := r.authorizeAs(ctx, "list", q); err != nil {
		return nil, err
	}
	opts.Namespace, opts.Fields = q.Namespace, q.Fields
	return r.list(ctx, q.Kind, opts)
}

func (r *Registry) list(ctx context.Context, kind *api.Kind, opts ListOptions) (*List, error) {
	sel, err := r.selector(kind, opts.Namespace, opts.Labels, opts.Fields)
	if err != nil {
		return nil, err
	}
	if opts.Continue == "" {
		return r.listNow(ctx, kind, opts, sel)
	}
	token, err := readToken(opts.Continue)
	if err != nil {
		return nil, err
	}
	return r.listAt(ctx, kind, opts, sel, token)
}

func (r *Registry) listNow(ctx context.Context, kind *api.Kind, opts ListOptions, sel *selector) (*List, error) {
	want, err := parseRevision(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if err := r.cache.current(ctx); err != nil {
		return nil, storeErr(kind, "", err)
	}
	entries, rev := r.cache.snapshot(r.cache.byRow[kind], opts.Namespace, "")
	switch {
	case opts.Match == metav1.ResourceVersionMatchExact && want != 0 && want != rev:
		return r.listAt(ctx, kind, opts, sel, token{Revision: want})
	case want > rev:
		return nil, tooLargeRevision(want, rev)
	}
	return page(kind, opts, sel, entries, rev), nil
}

// listAt reads the page of an older list from the store itself.
func (r *Registry) listAt(ctx context.Context, kind *api.Kind, opts ListOptions, sel *selector, t token) (*List, error) {
	prefix := prefixOf(kind)
	below := prefix
	if kind.Namespaced && opts.Namespace != "" {
		below += opts.Namespace + "/"
	}
	after := ""
	if t.After != "" {
		after = prefix + t.After
	}
	stored, err := r.store.List(ctx, below, after, 0, t.Revision)
	if err != nil {
		return nil, storeErr(kind, "", err)
	}
	entries := make([]*Entry, len(stored.KVs))
	for i, kv := range stored.KVs {
		entries[i] = &Entry{kind: kind, key: kv.Key[len(prefix):], rev: kv.Modified, raw: kv.Value}
	}
	return page(kind, opts, sel, entries, t.Revision), nil
}

// page filters entries and cuts them at the limit.
func page(kind *api.Kind, opts ListOptions, sel *selector, entries []*Entry, rev int64) *List {
	out := &List{Kind: kind, Revision: rev}
	if sel.all() && (opts.Limit <= 0 || int64(len(entries)) <= opts.Limit) {
		out.Entries = entries
		return out
	}
	for i, e := range entries {
		if !sel.matches(e) {
			continue
		}
		if opts.Limit > 0 && int64(len(out.Entries)) == opts.Limit {
			last := out.Entries[len(out.Entries)-1].key
			out.Continue = token{Revision: rev, After: last}.String()
			if sel.all() { // Kubernetes counts only when nothing is filtered
				rest := int64(len(entries) - i)
				out.Remaining = &rest
			}
			break
		}
		out.Entries = append(out.Entries, e)
	}
	return out
}

// token is where a list goes on.
type token struct {
	Revision int64  `json:"rv"`
	After    string `json:"after"`
}

func (t token) String() string {
	b, _ := json.Marshal(t) //nolint:errcheck // an int and a string
	return base64.RawURLEncoding.EncodeToString(b)
}

func readToken(s string) (token, error) {
	var t token
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.Revision <= 0 {
		return t, apierrors.NewBadRequest("continue: not a token of this server")
	}
	return t, nil
}

// parseRevision reads a resourceVersion; "" and "0" are 0.
func parseRevision(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	rev, err := strconv.ParseInt(s, 10, 64)
	if err != nil || rev < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion: %q is not a number as given out by this server", s))
	}
	return rev, nil
}

func tooLargeRevision(want, have int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", want, have), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// selector decides which entries a list or watch shows.
type selector struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	strategy  *Strategy
}

func (r *Registry) selector(kind *api.Kind, namespace string, l labels.Selector, f fields.Selector) (*selector, error) {
	s := &selector{namespace: namespace, labels: l, fields: f, strategy: r.strategies[kind]}
	if l != nil && l.Empty() {
		s.labels = nil
	}
	if f != nil && f.Empty() {
		s.fields = nil
	}
	if s.fields != nil {
		known := append([]string{"metadata.name", "metadata.namespace"}, s.strategy.FieldNames...)
		for _, req := range s.fields.Requirements() {
			if !slices.Contains(known, req.Field) {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %q is not a field that %s can be selected by; there are %s",
					req.Field, kind, strings.Join(known, ", ")))
			}
		}
	}
	return s, nil
}

func (s *selector) all() bool { return s.labels == nil && s.fields == nil }

// matches does not look at the namespace; see inNamespace.
func (s *selector) matches(e *Entry) bool {
	if s.all() {
		return true
	}
	obj := e.Object()
	if s.labels != nil && !s.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	return s.fields == nil || s.fields.Matches(s.fieldSet(obj))
}

func (s *selector) fieldSet(obj api.Object) fields.Set {
	set := fields.Set{}
	if s.strategy.Fields != nil {
		set = s.strategy.Fields(obj)
	}
	set["metadata.name"], set["metadata.namespace"] = obj.GetName(), obj.GetNamespace()
	return set
}

func (s *selector) inNamespace(e *Entry) bool {
	return s.namespace == "" || strings.HasPrefix(e.key, s.namespace) && len(e.key) > len(s.namespace) && e.key[len(s.namespace)] == '/'
}
