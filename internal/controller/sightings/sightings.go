package sightings

import (
	"context"
	"log/slog"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// slack is how far a time may be from when it is seen without being called another clock's. Times in objects are whole
// seconds, and a watch takes a moment.
const slack = 2 * time.Second

// Names of what is sighted: the start of a Job, and that a pod became ready.
const (
	started = "started"
	ready   = "ready"
)

// Sightings has when this master saw what objects say has happened.
type Sightings struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[types.UID]map[string]sighting
}

// sighting is one time in an object, zero if it says none, and when it was seen.
type sighting struct{ said, at time.Time }

// New makes a Sightings that has seen nothing.
func New() *Sightings { return &Sightings{now: clock.Now, seen: map[types.UID]map[string]sighting{}} }

// Run follows the cluster until ctx ends, by views that it shares with others; c is what may be read by.
func (s *Sightings) Run(ctx context.Context, c client.Interface, views *informer.Views, log *slog.Logger, ready func()) error {
	nodes := informer.New[*corev1.Node](c, api.Nodes, informer.Options{Views: views, Log: log})
	jobs := informer.New[*batchv1.Job](c, api.Jobs, informer.Options{Views: views, Log: log})
	nodes.OnChange(func(old, now *corev1.Node) { follow(s, old, now, taints) })
	jobs.OnChange(func(old, now *batchv1.Job) { follow(s, old, now, start) })
	return loop.Drive(ctx, ready, []supervise.Source{nodes, jobs})
}

// Taint is since when a node has a taint.
func (s *Sightings) Taint(node *corev1.Node, t *corev1.Taint) time.Time {
	return s.since(node.UID, nameOf(t), added(t))
}

// Start is when a Job started; zero if it has not.
func (s *Sightings) Start(job *batchv1.Job) time.Time {
	if job.Status.StartTime == nil {
		return time.Time{}
	}
	return s.since(job.UID, started, job.Status.StartTime.Time)
}

// Pod notes a change of a pod. Who asks for Ready calls it for all pods that it sees, on the master that leads.
func (s *Sightings) Pod(old, now *corev1.Pod) { follow(s, old, now, readiness) }

// Pods forgets pods that are not in a list of all: those that went while another master led, which nobody has seen here.
func (s *Sightings) Pods(all []*corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := map[types.UID]bool{}
	for of, what := range s.seen {
		if _, is := what[ready]; is {
			gone[of] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	for _, p := range all {
		delete(gone, p.UID)
	}
	for of := range gone {
		delete(s.seen, of)
	}
}

// Ready is since when a pod is ready, which its node's clock has said; zero if it is not.
func (s *Sightings) Ready(p *corev1.Pod) time.Time {
	said, is := readiness(p)[ready]
	if !is {
		return time.Time{}
	}
	return s.since(p.UID, ready, said)
}

// since answers with the moment that was noted, or with what the object says; what it does not say, or says of the
// future, happens now.
func (s *Sightings) since(of types.UID, what string, said time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.seen[of][what]; ok && have.said.Equal(said) {
		return have.at
	}
	if now := s.now(); said.IsZero() || said.After(now.Add(slack)) {
		s.note(of, what, sighting{said, now})
		return now
	}
	return said
}

// follow notes what an object says now and did not say before; says are its times, by name. An object that is new here may
// have changed long ago.
func follow[T interface {
	comparable
	api.Object
}](s *Sightings, old, now T, says func(T) map[string]time.Time) {
	var none T
	s.mu.Lock()
	defer s.mu.Unlock()
	if now == none {
		delete(s.seen, old.GetUID())
		return
	}
	of, live, before := now.GetUID(), false, map[string]time.Time(nil)
	if old != none && old.GetUID() == of {
		live, before = true, says(old)
	}
	is, at := says(now), s.now()
	s.keep(of, is)
	for what, said := range is {
		if _, noted := s.seen[of][what]; noted {
			continue
		}
		was, had := before[what]
		news := live && (!had || !was.Equal(said))
		if said.IsZero() || news && at.Sub(said).Abs() > slack {
			s.note(of, what, sighting{said, at})
		}
	}
}

// note is called with mu held.
func (s *Sightings) note(of types.UID, what string, x sighting) {
	if s.seen[of] == nil {
		s.seen[of] = map[string]sighting{}
	}
	s.seen[of][what] = x
}

// keep forgets all of an object but what it still says. It is called with mu held.
func (s *Sightings) keep(of types.UID, says map[string]time.Time) {
	for what, have := range s.seen[of] {
		if said, ok := says[what]; !ok || !said.Equal(have.said) {
			delete(s.seen[of], what)
		}
	}
	if len(s.seen[of]) == 0 {
		delete(s.seen, of)
	}
}

func nameOf(t *corev1.Taint) string { return t.Key + "=" + t.Value }

func added(t *corev1.Taint) time.Time {
	if t.TimeAdded == nil {
		return time.Time{}
	}
	return t.TimeAdded.Time
}

// taints are the times of a node's taints that evict pods.
func taints(n *corev1.Node) map[string]time.Time {
	var out map[string]time.Time
	for i := range n.Spec.Taints {
		if t := &n.Spec.Taints[i]; t.Effect == corev1.TaintEffectNoExecute {
			if out == nil {
				out = map[string]time.Time{}
			}
			out[nameOf(t)] = added(t)
		}
	}
	return out
}

// readiness is since when a pod is ready.
func readiness(p *corev1.Pod) map[string]time.Time {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return map[string]time.Time{ready: c.LastTransitionTime.Time}
		}
	}
	return nil
}

// start is when a Job that has a deadline started.
func start(j *batchv1.Job) map[string]time.Time {
	if j.Spec.ActiveDeadlineSeconds == nil || j.Status.StartTime == nil || j.Status.CompletionTime != nil {
		return nil
	}
	return map[string]time.Time{started: j.Status.StartTime.Time}
}
