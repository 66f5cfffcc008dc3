package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// fair is how long a pod may be ready without a request: among ten pods and at ten requests a second one in 20,000 is, by chance.
const fair = 10 * time.Second

// judge returns all that is not as it has to be.
func judge(r *record) error {
	if len(r.samples) == 0 {
		return errors.New("nothing was seen of the autoscaler")
	}
	var errs []error
	peak := r.peak()
	if len(peak.ready) <= r.least {
		errs = append(errs, fmt.Errorf("replicas did not grow: at most %d were ready", len(peak.ready)))
	}
	if on := slices.Compact(slices.Sorted(maps.Values(peak.ready))); len(on) < 2 {
		errs = append(errs, fmt.Errorf("replicas were not spread: at most %d were ready, on %v", len(peak.ready), on))
	}
	errs = append(errs, forgotten(r)...)
	if end := r.samples[len(r.samples)-1]; end.wanted != r.least || end.pods != r.least || len(end.ready) != r.least {
		errs = append(errs, fmt.Errorf("replicas did not become %d again: %s", r.least, end))
	}
	if n := len(r.failures); n > 0 {
		all := fmt.Errorf("%d of %d requests failed", n, n+len(r.answers))
		for i, f := range r.failures {
			if i == 5 {
				break
			}
			all = fmt.Errorf("%w\n  after %.1fs: %w", all, f.at.Seconds(), f.err)
		}
		errs = append(errs, all)
	}
	return errors.Join(errs...)
}

// forgotten are pods that were ready, and got no request.
func forgotten(r *record) (errs []error) {
	asked, since := map[string]bool{}, map[string]time.Duration{}
	for _, a := range r.answers {
		asked[a.pod] = true
	}
	found := map[string]bool{}
	for _, s := range r.samples {
		for pod, node := range s.ready {
			if _, ok := since[pod]; !ok {
				since[pod] = s.at
			}
			if !asked[pod] && !found[pod] && s.at-since[pod] >= fair {
				found[pod] = true
				errs = append(errs, fmt.Errorf("pod %s on %s was ready for %s and got no request", pod, node, fair))
			}
		}
	}
	return errs
}
