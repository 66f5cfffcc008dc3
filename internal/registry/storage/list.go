package storage

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/store"
)

// ListOptions selects objects. Namespace and Fields are the request's, if there is a request.
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

// List returns every object that opts selects, at one revision: the one that opts asks for, or else one that includes
// every write acknowledged before the call. The errors are 400, and 410 if the history of that revision is gone.
func (c *Cache) List(ctx context.Context, kind *api.Kind, opts ListOptions, sel *Selector) (*List, error) {
	if err := checkMatch(opts); err != nil {
		return nil, err
	}
	if opts.Continue == "" {
		return c.listNow(ctx, kind, opts, sel)
	}
	t, err := readToken(opts.Continue)
	if err != nil {
		return nil, err
	}
	if t.Revision == inconsistent {
		if err := c.Current(ctx); err != nil {
			return nil, Error(kind, "", err)
		}
		return c.cached(kind, opts, sel, t.After), nil
	}
	if err := c.reached(ctx, kind, t.Revision); err != nil {
		return nil, apierrors.NewBadRequest("continue: not a token of this server")
	}
	return c.listAt(ctx, kind, opts, sel, t)
}

// checkMatch refuses options that do not go together, as Kubernetes does.
func checkMatch(o ListOptions) error {
	bad := func(text string) error { return apierrors.NewBadRequest("resourceVersionMatch: " + text) }
	switch {
	case o.Continue != "" && o.ResourceVersion != "" && o.ResourceVersion != "0":
		return apierrors.NewBadRequest("resourceVersion: not together with continue, which names the revision")
	case o.Match == "":
		return nil
	case o.Match != metav1.ResourceVersionMatchExact && o.Match != metav1.ResourceVersionMatchNotOlderThan:
		return bad(fmt.Sprintf("%q is none of Exact, NotOlderThan", o.Match))
	case o.Continue != "":
		return bad("not together with continue")
	case o.ResourceVersion == "":
		return bad("needs a resourceVersion")
	case o.Match == metav1.ResourceVersionMatchExact && o.ResourceVersion == "0":
		return bad("Exact needs a resourceVersion other than 0")
	}
	return nil
}

func (c *Cache) listNow(ctx context.Context, kind *api.Kind, opts ListOptions, sel *Selector) (*List, error) {
	want, err := parseRevision(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if err := c.Current(ctx); err != nil {
		return nil, Error(kind, "", err)
	}
	l := c.cached(kind, opts, sel, "")
	switch {
	case want > l.Revision:
		return nil, tooLargeRevision(want, l.Revision)
	case opts.Match == metav1.ResourceVersionMatchExact && want != 0 && want != l.Revision:
		return c.listAt(ctx, kind, opts, sel, token{Revision: want})
	}
	return l, nil
}

// cached returns the page that follows a key, from the cache.
func (c *Cache) cached(kind *api.Kind, opts ListOptions, sel *Selector, after string) *List {
	kc := c.Of(kind)
	if opts.Limit <= 0 || !sel.all() { // a scan that decodes objects to filter them must not hold the lock
		entries, rev := kc.Snapshot(opts.Namespace, after)
		p := newPage(kind, opts, sel, rev)
		if sel.all() {
			p.list.Entries = entries
			return p.list
		}
		for _, e := range entries {
			if p.take(e); p.full {
				p.end(rev, 0)
				break
			}
		}
		return p.list
	}
	p := newPage(kind, opts, sel, 0)
	rest := int64(0)
	p.list.Revision = kc.scan(opts.Namespace, after, func(e *Entry) bool {
		if !p.full {
			p.take(e)
		}
		if p.full { // the rest is only counted
			rest++
		}
		return true
	})
	p.end(p.list.Revision, rest)
	return p.list
}

// listAt returns a page of an older list: from the cache if no object of the kind has changed since, else from the
// store, page by page.
func (c *Cache) listAt(ctx context.Context, kind *api.Kind, opts ListOptions, sel *Selector, t token) (*List, error) {
	if t.Revision < c.store.Compacted() { // even if the cache could answer: a token's lifetime must not depend on it
		return nil, expiredList(t)
	}
	if c.Of(kind).unchangedSince(t.Revision) {
		// Check again after the page was read: a change may have come in between.
		if l := c.cached(kind, opts, sel, t.After); c.Of(kind).unchangedSince(t.Revision) {
			l.at(t.Revision)
			return l, nil
		}
	}
	if !c.Of(kind).complete() {
		return nil, expiredList(t)
	}
	prefix := PrefixOf(kind)
	below := prefix
	if kind.Namespaced && opts.Namespace != "" {
		below += opts.Namespace + "/"
	}
	p := newPage(kind, opts, sel, t.Revision)
	after := ""
	if t.After != "" {
		after = prefix + t.After
	}
	for {
		// Read one more than the page holds, to know whether more follow.
		limit := opts.Limit
		if limit > 0 {
			limit = max(opts.Limit+1, minStorePage)
		}
		stored, err := c.store.List(ctx, below, after, limit, t.Revision)
		if errors.Is(err, store.ErrCompacted) {
			return nil, expiredList(t)
		}
		if err != nil {
			return nil, Error(kind, "", err)
		}
		for i, kv := range stored.KVs {
			p.take(&Entry{kind: kind, key: kv.Key[len(prefix):], rev: kv.Modified, text: kv.Value})
			if p.full {
				p.end(t.Revision, stored.Count-int64(i))
				return p.list, nil
			}
		}
		if !stored.More {
			return p.list, nil
		}
		after = stored.KVs[len(stored.KVs)-1].Key
	}
}

// minStorePage is how many objects a read fetches at least, because a selector may drop some of them.
const minStorePage = 256

// page collects matching entries until it is full.
type page struct {
	list  *List
	sel   *Selector
	limit int64
	full  bool // at least one more entry matched
}

func newPage(kind *api.Kind, opts ListOptions, sel *Selector, rev int64) *page {
	return &page{list: &List{Kind: kind, Revision: rev}, sel: sel, limit: opts.Limit}
}

func (p *page) take(e *Entry) {
	switch {
	case !p.sel.matches(e):
	case p.limit > 0 && int64(len(p.list.Entries)) == p.limit:
		p.full = true
	default:
		p.list.Entries = append(p.list.Entries, e)
	}
}

// end sets where the list continues after a full page, and how many objects are left.
func (p *page) end(rev, rest int64) {
	if !p.full {
		return
	}
	p.list.Continue = token{Revision: rev, After: p.list.Entries[len(p.list.Entries)-1].key}.String()
	if p.sel.all() { // Kubernetes counts only when nothing is filtered
		p.list.Remaining = &rest
	}
}

// at gives a list that was read later an older revision at which it was the same.
func (l *List) at(rev int64) {
	if l.Revision = rev; l.Continue != "" {
		l.Continue = token{Revision: rev, After: l.Entries[len(l.Entries)-1].key}.String()
	}
}

// expiredList returns 410 for a list whose history is gone. It carries a token with which a client can continue after
// the same key with the current objects, if it accepts a list of more than one revision.
func expiredList(t token) error {
	if t.After == "" {
		return expired(t.Revision)
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results")
	err.ErrStatus.ListMeta.Continue = token{Revision: inconsistent, After: t.After}.String()
	return err
}

// token says where a list continues.
type token struct {
	Revision int64  `json:"rv"`
	After    string `json:"after"`
}

// inconsistent is the revision of a token that continues with the current objects.
const inconsistent = -1

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
	if err != nil || t.Revision <= 0 && t.Revision != inconsistent {
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
