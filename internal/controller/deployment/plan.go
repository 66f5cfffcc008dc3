package deployment

import (
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// plan is what has to be done about one deployment, in this order.
type plan struct {
	update []*appsv1.ReplicaSet // write these, with new replicas, annotations or minReadySeconds
	scaled []scaling            // the Events to record about it
	create *appsv1.ReplicaSet   // make the set of the current template
	remove []*appsv1.ReplicaSet // history that is not kept

	status      appsv1.DeploymentStatus
	revision    string        // the deployment's annotation
	lookAgain   time.Duration // when the progress deadline ends; 0: when something changes
	statusSaved bool          // the status is as it was, and the revision too
}

// scaling is a change of one set's replicas.
type scaling struct {
	set      string
	from, to int32
}

// step is a deployment in the middle of a decision.
type step struct {
	d                  *appsv1.Deployment
	now                time.Time
	current            *appsv1.ReplicaSet   // nil: there is none yet
	old                []*appsv1.ReplicaSet // oldest first
	want               map[string]int32     // replicas by the set's name
	surge, unavailable int32
	plan               plan
}

// decide is the controller's decision, from the deployment, its sets as they stand, and the time; it is pure.
func decide(d *appsv1.Deployment, sets []*appsv1.ReplicaSet, now time.Time) plan {
	s := &step{d: d, now: now, want: map[string]int32{}}
	s.current, s.old = split(d, sets)
	s.surge, s.unavailable = limits(d)
	for _, rs := range sets {
		s.want[rs.Name] = value(rs.Spec.Replicas)
	}
	if d.DeletionTimestamp == nil {
		switch {
		case d.Spec.Paused || s.resized():
			s.resize()
			if d.Spec.Paused {
				s.plan.remove = cleanable(d, s.old)
			}
		case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
			s.recreate()
		default:
			s.roll()
		}
		s.writes()
	}
	s.planStatus()
	return s.plan
}

// all are the sets, oldest first, the current one last.
func (s *step) all() []*appsv1.ReplicaSet {
	if s.current == nil {
		return s.old
	}
	return append(slices.Clone(s.old), s.current)
}

func (s *step) total() (n int32) {
	for _, rs := range s.all() {
		n += s.want[rs.Name]
	}
	return n
}

// pods is how many pods there may be: as many as are wanted, or as many as there still are.
func (s *step) pods() (n int32) {
	for _, rs := range s.all() {
		n += max(s.want[rs.Name], rs.Status.Replicas)
	}
	return n
}

// available is how many pods of a set are certainly available. Pods that the set is about to lose do not count, not
// even if the set has yet to act on an earlier decision to shrink and is to grow again now.
func (s *step) available(rs *appsv1.ReplicaSet) int32 {
	return min(s.want[rs.Name], value(rs.Spec.Replicas), rs.Status.AvailableReplicas)
}

// ensure plans the set of the current template, with this many replicas, if there is none; it reports whether there
// was none.
func (s *step) ensure(replicas int32) bool {
	if s.current != nil {
		return false
	}
	rs := newSet(s.d, nextRevision(s.old))
	rs.Spec.Replicas = &replicas
	s.annotateSize(rs)
	s.plan.create = rs
	if replicas > 0 {
		s.plan.scaled = append(s.plan.scaled, scaling{set: rs.Name, to: replicas})
	}
	return true
}

// annotateSize annotates a set with the size of the deployment for which its replicas were chosen.
func (s *step) annotateSize(rs *appsv1.ReplicaSet) {
	rs.Annotations = with(rs.Annotations, desiredAnnotation, strconv.Itoa(int(value(s.d.Spec.Replicas))))
	rs.Annotations = with(rs.Annotations, maxAnnotation, strconv.Itoa(int(value(s.d.Spec.Replicas)+s.surge)))
}

// roll is one step of a rolling update: the current set up as far as the surge allows, the old ones down
// as far as availability allows.
func (s *step) roll() {
	replicas := value(s.d.Spec.Replicas)
	add := max(replicas+s.surge-s.pods(), 0)
	if !observed(s.old) {
		add = 0
	}
	if s.ensure(min(add, replicas)) {
		return
	}
	switch have := s.want[s.current.Name]; {
	case have > replicas:
		s.want[s.current.Name] = replicas
	case have < replicas:
		s.want[s.current.Name] += min(add, replicas-have)
	}
	if observed(s.all()) {
		s.rollDown(replicas - s.unavailable)
	}
	s.cleanIfDone()
}

// observed reports whether the sets' status reflects their present size. Until it does, a set that was scaled down
// may have more pods than its status says, and one that was scaled up fewer that are available.
func observed(sets []*appsv1.ReplicaSet) bool {
	return !slices.ContainsFunc(sets, func(rs *appsv1.ReplicaSet) bool { return rs.Status.ObservedGeneration < rs.Generation })
}

// rollDown scales the old sets down, the oldest first, while at least need pods stay available.
func (s *step) rollDown(need int32) {
	spare := s.total() - need - (s.want[s.current.Name] - s.available(s.current))
	for _, rs := range s.old { // first pods that are not available anyway
		if take := min(s.want[rs.Name]-s.available(rs), spare); take > 0 {
			s.want[rs.Name] -= take
			spare -= take
		}
	}
	available := -need
	for _, rs := range s.all() {
		available += s.available(rs)
	}
	spare = min(spare, available)
	for _, rs := range s.old {
		if take := min(s.want[rs.Name], spare); take > 0 {
			s.want[rs.Name] -= take
			spare -= take
		}
	}
}

// recreate waits until every old pod has ended before it creates new ones.
func (s *step) recreate() {
	ended := true
	for _, rs := range s.old {
		ended = ended && value(rs.Spec.Replicas) == 0 && rs.Status.Replicas == 0 && rs.Status.ObservedGeneration >= rs.Generation &&
			(rs.Status.TerminatingReplicas == nil || *rs.Status.TerminatingReplicas == 0)
		s.want[rs.Name] = 0
	}
	if !ended {
		return
	}
	if s.ensure(value(s.d.Spec.Replicas)) {
		return
	}
	s.want[s.current.Name] = value(s.d.Spec.Replicas)
	s.cleanIfDone()
}

func (s *step) cleanIfDone() {
	if st := s.calculate(); complete(s.d, &st) {
		s.plan.remove = cleanable(s.d, s.old)
	}
}

// writes turns the wanted replicas into updates of sets.
func (s *step) writes() {
	for _, rs := range s.all() {
		upd := rs.DeepCopy()
		from, to := value(rs.Spec.Replicas), s.want[rs.Name]
		upd.Spec.Replicas = &to
		if from != to || to > 0 {
			s.annotateSize(upd)
		}
		if rs == s.current && !s.d.Spec.Paused {
			upd.Annotations = annotations(s.d, upd, nextRevision(s.old))
			upd.Spec.MinReadySeconds = s.d.Spec.MinReadySeconds
		}
		if from == to && upd.Spec.MinReadySeconds == rs.Spec.MinReadySeconds && sameMap(upd.Annotations, rs.Annotations) {
			continue
		}
		s.plan.update = append(s.plan.update, upd)
		if from != to {
			s.plan.scaled = append(s.plan.scaled, scaling{set: rs.Name, from: from, to: to})
		}
	}
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		if w, ok := b[key]; !ok || v != w {
			return false
		}
	}
	return true
}
