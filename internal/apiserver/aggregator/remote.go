package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
	"minik8s/internal/clock"
)

// The bounds of what a Service says of its group.
const (
	maxDiscovery = 1 << 20 // bytes
	maxResources = 2000
)

// What a Service said of its group is asked again after discoveryAge, when a client wants to know, and after retryAge if
// it said nothing. A change of the APIService, as of its condition, has it asked at once.
const (
	discoveryAge = time.Minute
	retryAge     = 5 * time.Second
)

// said is what the Service of an APIService says of its group.
type said struct {
	asking sync.Mutex // held while it is asked, so that many clients ask once
	last   atomic.Pointer[saying]
}

// saying is what it said last. list is from before, if it failed then.
type saying struct {
	revision string // of the APIService then
	at       time.Time
	failed   bool
	list     []metav1.APIResource
}

// remoteResources returns what an APIService's Service says of its group, and whether that is current. While it is asked others get what
// it said before, so that a Service that does not answer keeps only those who come first.
func (a *Aggregator) remoteResources(ctx context.Context, of *apiregistrationv1.APIService) ([]metav1.APIResource, bool) {
	s := a.saidBy(of.Name)
	if last := s.last.Load(); !s.asking.TryLock() {
		if last != nil {
			return last.list, !last.failed && last.revision == of.ResourceVersion
		}
		s.asking.Lock()
	}
	defer s.asking.Unlock()
	last := s.last.Load()
	if last == nil {
		last = &saying{}
	}
	if unavailable(of) != "" || a.cfg.Services == nil {
		return last.list, false
	}
	age := clock.Now().Sub(last.at)
	if last.revision == of.ResourceVersion && age >= 0 && (!last.failed && age < discoveryAge || last.failed && age < retryAge) {
		return last.list, !last.failed
	}
	list, err := a.cfg.Services.resources(ctx, of)
	if ctx.Err() != nil {
		return last.list, false
	}
	next := &saying{revision: of.ResourceVersion, at: clock.Now(), list: list}
	if err != nil {
		a.cfg.Log.Warn("a Service does not say what is in its group", "apiservice", of.Name, "error", err)
		next.failed, next.list = true, last.list
	}
	s.last.Store(next)
	return next.list, !next.failed
}

// saidBy returns what the Service of an APIService of this name said, and forgets that of those that are gone.
func (a *Aggregator) saidBy(name string) *said {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.said[name]
	if s == nil {
		for other := range a.said {
			if a.cfg.Registry.Cached(api.APIServices, "", other) == nil {
				delete(a.said, other)
			}
		}
		s = &said{}
		a.said[name] = s
	}
	return s
}

// resources asks an APIService's Service what is in its group and version.
func (s *Services) resources(ctx context.Context, a *apiregistrationv1.APIService) ([]metav1.APIResource, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	resp, err := s.ask(ctx, a, discoveryPath(a))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxDiscovery+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxDiscovery {
		return nil, fmt.Errorf("its discovery has more than %d bytes", maxDiscovery)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("its discovery is no APIResourceList: %w", err)
	}
	if gv := a.Spec.Group + "/" + a.Spec.Version; list.GroupVersion != gv {
		return nil, fmt.Errorf("its discovery is of %q, not of %q", list.GroupVersion, gv)
	}
	if len(list.APIResources) > maxResources {
		return nil, fmt.Errorf("its discovery has more than %d resources", maxResources)
	}
	if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "" || strings.HasPrefix(r.Name, "/") }) {
		return nil, errors.New("its discovery has a resource without a name")
	}
	return list.APIResources, nil
}
