package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// sample is what was seen at one time.
type sample struct {
	at                  time.Duration // since the beginning
	wanted, pods, ready int           // replicas; pods with those that end
	least, most         int           // what the autoscaler may choose
	used, target        int           // percent of what is requested; used is -1 as long as it is not known
	nodes               map[string]string
}

// answer is a request that was answered.
type answer struct {
	at  time.Duration
	pod string
}

// judge returns what is not as it has to be.
func judge(samples []sample, answers []answer, failures []string) error {
	var errs []error
	grown, asked := sample{}, map[string]bool{}
	for _, s := range samples {
		if s.ready > grown.ready {
			grown = s
		}
	}
	for _, a := range answers {
		asked[a.pod] = true
	}
	if len(samples) == 0 || grown.ready < grown.most {
		return fmt.Errorf("at most %d of %d replicas were ready", grown.ready, grown.most)
	}
	machines := map[string]bool{}
	for pod, node := range grown.nodes {
		machines[node] = true
		if !asked[pod] {
			errs = append(errs, fmt.Errorf("pod %s was ready and got no request", pod))
		}
	}
	if len(machines) < 2 {
		errs = append(errs, fmt.Errorf("all pods were on %v", slices.Sorted(maps.Keys(machines))))
	}
	if end := samples[len(samples)-1]; end.wanted != end.least {
		errs = append(errs, fmt.Errorf("at the end %d replicas are wanted, and not %d", end.wanted, end.least))
	}
	if n := len(failures); n > 0 {
		errs = append(errs, fmt.Errorf("%d of %d requests failed, the first with %s", n, n+len(answers), failures[0]))
	}
	return errors.Join(errs...)
}
