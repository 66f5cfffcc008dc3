package deployment

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	ct "minik8s/internal/controller/controllertest"
)

// world is a deployment, its sets and their pods, with controllers that act when they are told to.
type world struct {
	d    *appsv1.Deployment
	sets map[string]*set
	now  time.Time
	made int
}

// set is a replica set and how many of its pods there are, and are ready.
type set struct {
	rs          *appsv1.ReplicaSet
	pods, ready int32
}

func newWorld(replicas int32, surge, unavailable string, kind appsv1.DeploymentStrategyType) *world {
	s, u := intstr.Parse(surge), intstr.Parse(unavailable)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "d", Generation: 1},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: ct.Selector("web"), Template: ct.Template("web", "x:1"),
			ProgressDeadlineSeconds: new(int32(600)), RevisionHistoryLimit: new(int32(2)),
			Strategy: appsv1.DeploymentStrategy{Type: kind}}}
	if kind == appsv1.RollingUpdateDeploymentStrategyType {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u}
	}
	return &world{d: d, sets: map[string]*set{}, now: time.Unix(1000, 0)}
}

func (w *world) list() []*appsv1.ReplicaSet {
	var out []*appsv1.ReplicaSet
	for _, name := range w.names() {
		out = append(out, w.sets[name].rs.DeepCopy())
	}
	return out
}

// act lets the deployment's controller take a step.
func (w *world) act() plan {
	w.now = w.now.Add(time.Second)
	p := decide(w.d, w.list(), w.now)
	for _, rs := range p.update {
		s := w.sets[rs.Name]
		if value(s.rs.Spec.Replicas) != value(rs.Spec.Replicas) {
			rs.Generation++
		}
		status := s.rs.Status
		s.rs = rs.DeepCopy()
		s.rs.Status = status
	}
	if p.create != nil {
		if w.sets[p.create.Name] == nil {
			w.made++
			rs := p.create.DeepCopy()
			rs.Generation, rs.UID = 1, "u"
			rs.CreationTimestamp = metav1.NewTime(w.now)
			w.sets[rs.Name] = &set{rs: rs}
		}
	}
	for _, rs := range p.remove {
		if w.sets[rs.Name].pods > 0 {
			panic("a set with pods was removed")
		}
		delete(w.sets, rs.Name)
	}
	w.d.Status = p.status
	if p.revision != "" {
		w.d.Annotations = with(w.d.Annotations, revisionAnnotation, p.revision)
	}
	return p
}

// keep is one step of a set's controller: it writes the set's status, then creates or deletes pods, those that are
// not ready first.
func (s *set) keep() {
	zero := int32(0)
	observed := s.rs.Status.ObservedGeneration
	if s.pods == value(s.rs.Spec.Replicas) { // as our controller does: what is not settled is not observed
		observed = s.rs.Generation
	}
	s.rs.Status = appsv1.ReplicaSetStatus{Replicas: s.pods, ReadyReplicas: s.ready, AvailableReplicas: s.ready,
		ObservedGeneration: observed, TerminatingReplicas: &zero}
	s.pods = value(s.rs.Spec.Replicas)
	s.ready = min(s.ready, s.pods)
}

func (w *world) total() (n, ready int32) {
	for _, s := range w.sets {
		n, ready = n+s.pods, ready+s.ready
	}
	return n, ready
}

// kept is how many pods are known to be available and not given up.
func (w *world) kept() (n int32) {
	for _, s := range w.sets {
		n += min(value(s.rs.Spec.Replicas), s.rs.Status.AvailableReplicas)
	}
	return n
}

func (w *world) any(r *rand.Rand) *set {
	names := w.names()
	if len(names) == 0 {
		return nil
	}
	return w.sets[names[r.IntN(len(names))]]
}

// names are those of the sets, in order, so that a seed gives the same run each time.
func (w *world) names() []string { return slices.Sorted(maps.Keys(w.sets)) }

func (w *world) change(image string) {
	w.d.Spec.Template = ct.Template("web", image)
	w.d.Generation++
}

// settle runs everything until nothing changes.
func (w *world) settle(t *testing.T) {
	t.Helper()
	for range 500 {
		p := w.act()
		moved := len(p.update) > 0 || p.create != nil || len(p.remove) > 0 || !p.statusSaved
		for _, s := range w.sets {
			before := *s
			status := s.rs.Status
			s.keep()
			s.ready = s.pods
			moved = moved || before.pods != s.pods || before.ready != s.ready || status.AvailableReplicas != s.ready || status.ObservedGeneration != s.rs.Generation
		}
		if !moved {
			return
		}
	}
	t.Fatalf("it never comes to rest: %+v", w.d.Status)
}

func (w *world) check(t *testing.T) {
	t.Helper()
	n, ready := w.total()
	if want := value(w.d.Spec.Replicas); n != want || ready != want {
		t.Errorf("%d pods, %d ready, want %d", n, ready, want)
	}
	current, _ := split(w.d, w.list())
	if current == nil || value(current.Spec.Replicas) != value(w.d.Spec.Replicas) {
		t.Errorf("the current set does not have them: %+v", current)
	}
	if c := find(&w.d.Status, appsv1.DeploymentProgressing); c == nil || c.Reason != newSetAvailable {
		t.Errorf("progress: %+v", c)
	}
	if len(w.sets) > 3 {
		t.Errorf("%d sets, the history is 2", len(w.sets))
	}
}

// TestRollsWithinItsLimits: whatever the order of events, there are never more pods than the surge allows, and once all
// were seen to be ready, never fewer ready ones than may be unavailable. Before that, pods that nobody has seen ready may be
// given up for newer ones, and become ready before they go.
func TestRollsWithinItsLimits(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		replicas := int32(r.IntN(12) + 1)
		surge, unavailable := fmt.Sprint(r.IntN(4)), fmt.Sprintf("%d%%", r.IntN(60))
		w := newWorld(replicas, surge, unavailable, appsv1.RollingUpdateDeploymentStrategyType)
		maxSurge, maxUnavailable := limits(w.d)
		full := false
		for range 300 {
			switch k := r.IntN(10); {
			case k < 3:
				w.act()
			case k < 6:
				if s := w.any(r); s != nil {
					s.keep()
				}
			case k < 9:
				if s := w.any(r); s != nil && s.ready < s.pods {
					s.ready++
				}
			case r.IntN(8) == 0:
				w.change(fmt.Sprintf("x:%d", r.IntN(3)))
			}
			n, ready := w.total()
			if n > replicas+maxSurge {
				t.Fatalf("seed %d: %d pods of %d with surge %s", seed, n, replicas, surge)
			}
			full = full || w.kept() >= replicas
			if full && ready < replicas-maxUnavailable {
				t.Fatalf("seed %d: %d are ready of %d with %s and %s", seed, ready, replicas, surge, unavailable)
			}
		}
		w.settle(t)
		w.check(t)
	}
}

// TestRecreateNeverMixes: no new pod beside an old one.
func TestRecreateNeverMixes(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(4, "0", "0", appsv1.RecreateDeploymentStrategyType)
		for i := range 200 {
			switch k := r.IntN(10); {
			case k < 4:
				w.act()
			case k < 9:
				if s := w.any(r); s != nil {
					s.keep()
					s.ready = s.pods
				}
			case i%20 == 0:
				w.change(fmt.Sprintf("x:%d", r.IntN(3)))
			}
			with := 0
			for _, s := range w.sets {
				if s.pods > 0 {
					with++
				}
			}
			if with > 1 {
				t.Fatalf("seed %d: two templates run at once", seed)
			}
		}
		w.settle(t)
		w.check(t)
	}
}

func TestScalesAndPausesAndRollsBack(t *testing.T) {
	w := newWorld(4, "25%", "25%", appsv1.RollingUpdateDeploymentStrategyType)
	w.settle(t)
	w.check(t)
	w.d.Spec.Replicas = new(int32(10))
	w.d.Generation++
	w.settle(t)
	w.check(t)

	w.d.Spec.Paused = true
	w.change("x:2")
	w.settle(t)
	if w.made != 1 || find(&w.d.Status, appsv1.DeploymentProgressing).Reason != paused {
		t.Errorf("paused: %d sets were made, %+v", w.made, w.d.Status)
	}
	w.d.Spec.Paused = false
	w.d.Generation++
	w.settle(t)
	w.check(t)
	if rev := w.d.Annotations[revisionAnnotation]; rev != "2" {
		t.Errorf("revision %s", rev)
	}
	w.change("x:1")
	w.settle(t)
	w.check(t)
	current, _ := split(w.d, w.list())
	if w.made != 2 || current.Annotations[revisionAnnotation] != "3" || current.Annotations[historyAnnotation] != "1" {
		t.Errorf("rolled back: %d sets were made, %v", w.made, current.Annotations)
	}
}

// TestSharesAChangeOfSize: in the middle of a rollout both sets grow in proportion.
func TestSharesAChangeOfSize(t *testing.T) {
	w := newWorld(10, "3", "2", appsv1.RollingUpdateDeploymentStrategyType)
	mk := func(name, image string, n int32, at int64) {
		rs := newSet(&appsv1.Deployment{ObjectMeta: w.d.ObjectMeta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(10)),
			Selector: w.d.Spec.Selector, Template: ct.Template("web", image)}}, at)
		rs.Name, rs.Spec.Replicas, rs.CreationTimestamp = name, &n, metav1.Unix(at, 0)
		rs.Annotations[desiredAnnotation], rs.Annotations[maxAnnotation] = "10", "13"
		w.sets[name] = &set{rs: rs, pods: n, ready: n}
	}
	mk("old", "x:0", 8, 1)
	mk("new", "x:1", 5, 2)
	w.sets["new"].ready = 0
	for _, s := range w.sets {
		s.keep()
	}
	w.d.Spec.Replicas = new(int32(15))
	w.act()
	if a, b := value(w.sets["old"].rs.Spec.Replicas), value(w.sets["new"].rs.Spec.Replicas); a != 11 || b != 7 {
		t.Errorf("got %d and %d, want 11 and 7", a, b)
	}
}

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		replicas           int32
		surge, unavailable string
		s, u               int32
	}{
		{10, "25%", "25%", 3, 2}, {1, "25%", "25%", 1, 0}, {10, "0", "0%", 0, 1}, {2, "0%", "1%", 0, 1},
		{3, "1", "100%", 1, 3}, {3, "0", "7", 0, 3}, {0, "1", "1", 0, 0},
	} {
		w := newWorld(test.replicas, test.surge, test.unavailable, appsv1.RollingUpdateDeploymentStrategyType)
		if s, u := limits(w.d); s != test.s || u != test.u {
			t.Errorf("%+v: got %d and %d", test, s, u)
		}
	}
}

func TestSaysThatItStandsStill(t *testing.T) {
	w := newWorld(3, "1", "0", appsv1.RollingUpdateDeploymentStrategyType)
	p := w.act()
	if c := find(&w.d.Status, appsv1.DeploymentProgressing); c == nil || c.Reason != newSetCreated || !strings.Contains(c.Message, p.create.Name) {
		t.Fatalf("%+v", c)
	}
	if p = w.act(); p.lookAgain <= 0 || p.lookAgain > 601*time.Second {
		t.Errorf("it looks again in %s", p.lookAgain)
	}
	w.now = w.now.Add(601 * time.Second)
	w.act()
	if c := find(&w.d.Status, appsv1.DeploymentProgressing); c.Reason != timedOut || c.Status != corev1.ConditionFalse {
		t.Errorf("%+v", c)
	}
	w.settle(t)
	w.check(t)
}
