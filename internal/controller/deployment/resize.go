package deployment

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// active are the sets that have or want pods.
func (s *step) active() []*appsv1.ReplicaSet {
	var out []*appsv1.ReplicaSet
	for _, rs := range s.all() {
		if s.want[rs.Name] > 0 {
			out = append(out, rs)
		}
	}
	return out
}

// resized reports whether the deployment's replicas were changed since its sets were last scaled for them.
func (s *step) resized() bool {
	for _, rs := range s.active() {
		if n, err := strconv.Atoi(rs.Annotations[desiredAnnotation]); err == nil && int32(n) != value(s.d.Spec.Replicas) {
			return true
		}
	}
	return false
}

// resize scales the sets to the deployment's new size without advancing the rollout: a single set gets all of it,
// several get shares in proportion to their size.
func (s *step) resize() {
	replicas := value(s.d.Spec.Replicas)
	active := s.active()
	switch {
	case len(active) == 0 && len(s.all()) > 0:
		s.want[s.newest().Name] = replicas
		return
	case len(active) == 1:
		s.want[active[0].Name] = replicas
		return
	case len(active) == 0:
		return
	}
	if s.saturated() {
		for _, rs := range s.old {
			s.want[rs.Name] = 0
		}
		return
	}
	if s.d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		s.share(active, replicas)
	}
}

// newest is the current set, or the youngest if the current template has none yet.
func (s *step) newest() *appsv1.ReplicaSet {
	if s.current != nil {
		return s.current
	}
	return s.old[len(s.old)-1]
}

// saturated reports whether the current set has all replicas that are wanted, and all are available.
func (s *step) saturated() bool {
	if s.current == nil {
		return false
	}
	replicas := value(s.d.Spec.Replicas)
	n, err := strconv.Atoi(s.current.Annotations[desiredAnnotation])
	return err == nil && s.want[s.current.Name] == replicas && int32(n) == replicas && s.current.Status.AvailableReplicas == replicas
}

// share divides the pods to add or to remove among the sets, the largest first; what rounding leaves over goes to the
// largest.
func (s *step) share(active []*appsv1.ReplicaSet, replicas int32) {
	allowed := int32(0)
	if replicas > 0 {
		allowed = replicas + s.surge
	}
	diff := allowed - s.total()
	if diff == 0 {
		return
	}
	slices.SortStableFunc(active, func(a, b *appsv1.ReplicaSet) int {
		if c := cmp.Compare(s.want[b.Name], s.want[a.Name]); c != 0 {
			return c
		}
		if diff > 0 { // growing: the newer first
			return oldestFirst(b, a)
		}
		return oldestFirst(a, b)
	})
	var given int32
	size := map[string]int32{}
	for _, rs := range active {
		part := s.fraction(rs, replicas)
		if diff > 0 {
			part = max(min(part, diff-given), 0)
		} else {
			part = min(max(part, diff-given), 0)
		}
		given += part
		size[rs.Name] = s.want[rs.Name] + part
	}
	size[active[0].Name] += diff - given
	for name, n := range size {
		s.want[name] = max(n, 0)
	}
}

// fraction is how many pods a set would gain or lose if the whole deployment changed in proportion.
func (s *step) fraction(rs *appsv1.ReplicaSet, replicas int32) int32 {
	have := s.want[rs.Name]
	if replicas == 0 {
		return -have
	}
	before, err := strconv.Atoi(rs.Annotations[maxAnnotation])
	if err != nil || before <= 0 {
		before = int(max(s.d.Status.Replicas, 1))
	}
	target := float64(have) * float64(replicas+s.surge) / float64(before)
	return int32(math.Round(target)) - have
}
