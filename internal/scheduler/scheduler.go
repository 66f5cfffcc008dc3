package scheduler

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/events"
	"minik8s/internal/informer"
)

// Name is what pods name in schedulerName.
const Name = "default-scheduler"

// Scheduler decides where pods run.
type Scheduler struct {
	client client.Interface
	record *events.Recorder
	log    *slog.Logger
	pods   *informer.Informer[*corev1.Pod]
	nodes  *informer.Informer[*corev1.Node]

	// notes are changes that the one deciding goroutine has not seen yet.
	mu    sync.Mutex
	notes []func()
	wake  chan struct{}

	// All below belongs to the deciding goroutine.
	state   *state
	active  []types.UID // to be decided, first come first served
	waiting map[types.UID]*waiter
	binds   sync.WaitGroup
}

// waiter is a pod without a node.
type waiter struct {
	pod    *corev1.Pod
	parked bool // it fits nowhere until something changes
	tries  int
}

// New makes a scheduler.
func New(c client.Interface, record *events.Recorder, log *slog.Logger) *Scheduler {
	s := &Scheduler{client: c, record: record, log: log, wake: make(chan struct{}, 1),
		state: newState(), waiting: map[types.UID]*waiter{},
		pods:  informer.New[*corev1.Pod](c, api.Pods, informer.Options{Log: log}),
		nodes: informer.New[*corev1.Node](c, api.Nodes, informer.Options{Log: log}),
	}
	s.pods.OnChange(func(old, now *corev1.Pod) { s.note(func() { s.podChanged(old, now) }) })
	s.nodes.OnChange(func(old, now *corev1.Node) { s.note(func() { s.nodeChanged(old, now) }) })
	return s
}

// note hands a change to the deciding goroutine.
func (s *Scheduler) note(f func()) {
	s.mu.Lock()
	s.notes = append(s.notes, f)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run decides until ctx ends.
func (s *Scheduler) Run(ctx context.Context, ready func()) error {
	go s.nodes.Run(ctx, func() { //nolint:errcheck // it returns when ctx ends
		go s.pods.Run(ctx, ready) //nolint:errcheck // as above
	})
	defer s.binds.Wait()
	for {
		s.mu.Lock()
		notes := s.notes
		s.notes = nil
		s.mu.Unlock()
		for _, f := range notes {
			f()
		}
		if len(s.active) > 0 {
			uid := s.active[0]
			s.active = s.active[1:]
			s.decide(ctx, uid)
			continue
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func (s *Scheduler) podChanged(old, now *corev1.Pod) {
	if now == nil {
		delete(s.waiting, old.UID)
		if s.state.remove(old.UID) {
			s.unpark()
		}
		return
	}
	switch {
	case finished(now):
		delete(s.waiting, now.UID)
		if s.state.remove(now.UID) {
			s.unpark()
		}
	case now.Spec.NodeName != "":
		delete(s.waiting, now.UID)
		s.state.place(newPodInfo(now), now.Spec.NodeName)
	case now.DeletionTimestamp != nil || now.Spec.SchedulerName != Name:
		delete(s.waiting, now.UID)
	default:
		if _, assumed := s.state.placed[now.UID]; assumed {
			return // its binding is on the way
		}
		w := s.waiting[now.UID]
		if w == nil {
			s.waiting[now.UID] = &waiter{pod: now}
			s.active = append(s.active, now.UID)
			return
		}
		changed := w.pod.Generation != now.Generation
		w.pod = now
		if w.parked && changed { // our own condition on its status is no reason to try again
			s.activate(now.UID)
		}
	}
}

func (s *Scheduler) nodeChanged(old, now *corev1.Node) {
	if now == nil {
		s.state.removeNode(old.Name)
		return
	}
	s.state.setNode(now)
	s.unpark()
}

func (s *Scheduler) activate(uid types.UID) {
	s.waiting[uid].parked = false
	s.active = append(s.active, uid)
}

// unpark tries the pods that fit nowhere again, oldest first.
func (s *Scheduler) unpark() {
	var uids []types.UID
	for uid, w := range s.waiting {
		if w.parked {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(uids, func(a, b types.UID) int {
		x, y := s.waiting[a].pod, s.waiting[b].pod
		if c := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); c != 0 {
			return c
		}
		return compare(string(a), string(b))
	})
	for _, uid := range uids {
		s.activate(uid)
	}
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// decide finds a node for one pod. The binding is written beside the next decision: the pod counts on
// its node from now on.
func (s *Scheduler) decide(ctx context.Context, uid types.UID) {
	w := s.waiting[uid]
	if w == nil || w.parked {
		return
	}
	info := newPodInfo(w.pod)
	node, reasons, known := s.state.choose(info)
	if node == "" {
		w.parked = true
		s.unfit(ctx, w.pod, explain(known, reasons))
		return
	}
	delete(s.waiting, uid)
	s.state.place(info, node)
	s.binds.Add(1)
	go func() {
		defer s.binds.Done()
		s.bind(ctx, w, node)
	}()
}

// maxRetry bounds the pause before a failed binding is decided anew.
const maxRetry = 10 * time.Second

func (s *Scheduler) bind(ctx context.Context, w *waiter, node string) {
	pod := w.pod
	err := s.client.Bind(ctx, pod.Namespace, pod.Name, pod.UID, node)
	if err == nil {
		s.record.Event(pod, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node)
		return
	}
	if ctx.Err() != nil {
		return
	}
	s.log.Debug("binding failed", "pod", pod.Namespace+"/"+pod.Name, "node", node, "error", err)
	again := func() {
		s.note(func() {
			s.state.remove(pod.UID)
			if now, ok := s.pods.Get(pod.Namespace, pod.Name); ok && now.UID == pod.UID {
				s.podChanged(nil, now)
			}
		})
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		again() // somebody else bound or deleted it: the informer knows, or will
		return
	}
	w.tries++
	time.AfterFunc(min(time.Duration(w.tries)*100*time.Millisecond, maxRetry), again)
}

// unfit says on the pod why it has no node.
func (s *Scheduler) unfit(ctx context.Context, pod *corev1.Pod, why string) {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if i >= 0 && pod.Status.Conditions[i].Message == why && pod.Status.Conditions[i].Status == corev1.ConditionFalse {
		return
	}
	s.record.Event(pod, corev1.EventTypeWarning, "FailedScheduling", "%s", why)
	upd := pod.DeepCopy()
	c := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: why, LastTransitionTime: metav1.Now(), ObservedGeneration: pod.Generation}
	if i >= 0 {
		upd.Status.Conditions[i] = c
	} else {
		upd.Status.Conditions = append(upd.Status.Conditions, c)
	}
	s.binds.Add(1)
	go func() {
		defer s.binds.Done()
		_, err := s.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
			s.log.Warn("could not say on a pod why it has no node", "pod", pod.Namespace+"/"+pod.Name, "error", err)
		}
	}()
}
