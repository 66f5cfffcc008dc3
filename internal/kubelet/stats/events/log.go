package events

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/cadvisor/info/v1"

	"minik8s/internal/clock"
	"minik8s/internal/kubelet/cri"
)

const (
	// kept is how many events are remembered.
	kept = 1000
	// behind is how many of them a stream may be behind.
	behind = 1000
)

// Source is a runtime: see cri.Runtime.
type Source interface {
	Events(ctx context.Context) <-chan cri.Event
	Pods(ctx context.Context) ([]cri.Pod, error)
	Pod(ctx context.Context, uid string) (cri.Pod, error)
}

// Query says which events somebody wants.
type Query struct {
	Types map[v1.EventType]bool
	// Container is the cgroup in which they happened, with Below also those below it.
	Container string
	Below     bool
	// Start and End bound the time of what is past; zero: no bound.
	Start, End time.Time
	// Max is how many of what is past are wanted, the newest; 0: all.
	Max int
}

func (q *Query) wants(e *v1.Event) bool {
	in := e.ContainerName == q.Container || q.Below && (q.Container == "/" || strings.HasPrefix(e.ContainerName, q.Container+"/"))
	return in && q.Types[e.EventType] && !e.Timestamp.Before(q.Start) && (q.End.IsZero() || !e.Timestamp.After(q.End))
}

// Log is what happened. Run it; its other methods may be called at any time.
type Log struct {
	source Source
	root   string // the cgroup of all pods
	log    *slog.Logger

	mu      sync.Mutex
	events  []*v1.Event // by time
	streams map[*stream]struct{}
	known   map[string]*known // containers that the runtime has, by id
	kernel  uint64            // the number of the next record of the kernel's log
}

// known is a container, and which events of it there were.
type known struct {
	podUID, cgroup string
	began, ended   bool
}

// stream is somebody who follows.
type stream struct {
	query Query
	wake  chan struct{} // has one if there is something
	queue []*v1.Event   // guarded by Log.mu
	lost  bool          // it was too slow; guarded by Log.mu
}

// New returns a log of a runtime's containers, whose cgroups are below root.
func New(source Source, root string, log *slog.Logger) *Log {
	return &Log{source: source, root: root, log: log, streams: map[*stream]struct{}{}, known: map[string]*known{}}
}

// Run follows the runtime until ctx ends.
func (l *Log) Run(ctx context.Context) {
	changes := l.source.Events(ctx) // first, so that nothing is missed
	l.look(ctx, "")
	for e := range changes {
		l.look(ctx, e.PodUID)
	}
}

// look finds what is new about a pod, or if uid is empty about all.
func (l *Log) look(ctx context.Context, uid string) {
	var pods []cri.Pod
	var err error
	if uid == "" {
		pods, err = l.source.Pods(ctx)
	} else {
		var p cri.Pod
		p, err = l.source.Pod(ctx, uid)
		pods = []cri.Pod{p}
	}
	if err != nil {
		if ctx.Err() == nil {
			l.log.Warn("events of containers may be missing", "pod", uid, "err", err)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	there := map[string]bool{}
	for _, p := range pods {
		for i := range p.Containers {
			c := &p.Containers[i]
			there[c.ID] = true
			l.note(c)
		}
	}
	for id, k := range l.known {
		if !there[id] && (uid == "" || k.podUID == uid) {
			if k.began && !k.ended {
				l.add(&v1.Event{ContainerName: k.cgroup, Timestamp: clock.Now(), EventType: v1.EventContainerDeletion})
			}
			delete(l.known, id)
		}
	}
}

// note adds the events of a container that are new. The caller has locked l.
func (l *Log) note(c *cri.Container) {
	if c.State == cri.Created || c.StartError != "" || c.StartedAt.IsZero() {
		return // it has not run
	}
	k := l.known[c.ID]
	if k == nil {
		k = &known{podUID: c.PodUID, cgroup: c.Cgroup}
		l.known[c.ID] = k
	}
	if !k.began {
		k.began = true
		l.add(&v1.Event{ContainerName: k.cgroup, Timestamp: c.StartedAt, EventType: v1.EventContainerCreation})
	}
	if c.State == cri.Exited && !k.ended {
		k.ended = true
		l.add(&v1.Event{ContainerName: k.cgroup, Timestamp: c.FinishedAt, EventType: v1.EventContainerDeletion})
	}
}

// add remembers an event, and gives it to those who follow. The caller has locked l.
func (l *Log) add(e *v1.Event) {
	at, _ := slices.BinarySearchFunc(l.events, e, func(a, b *v1.Event) int {
		if a.Timestamp.After(b.Timestamp) {
			return 1
		}
		return -1 // after those of the same time
	})
	l.events = slices.Insert(l.events, at, e)
	if len(l.events) > kept {
		l.events = slices.Delete(l.events, 0, 1+kept/10)
	}
	for s := range l.streams {
		if !s.query.wants(e) {
			continue
		}
		if len(s.queue) == behind {
			s.lost = true
		} else {
			s.queue = append(s.queue, e)
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Past returns what has happened, the oldest first. Events must not be changed.
func (l *Log) Past(q Query) []*v1.Event {
	if k, err := openKernel(); err == nil {
		k.past(l.take)
		k.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []*v1.Event{}
	for _, e := range l.events {
		if q.wants(e) {
			out = append(out, e)
		}
	}
	if q.Max > 0 {
		out = out[max(0, len(out)-q.Max):]
	}
	return out
}

// Follow calls send with what happens from now on, until ctx ends or send fails. It calls ready, when from now on is.
func (l *Log) Follow(ctx context.Context, q Query, ready func() error, send func(*v1.Event) error) error {
	s := &stream{query: q, wake: make(chan struct{}, 1)}
	s.query.Start, s.query.End = time.Time{}, time.Time{}
	k, err := openKernel()
	if err == nil {
		k.past(l.take) // it is no news
	}
	l.mu.Lock()
	l.streams[s] = struct{}{}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.streams, s)
		l.mu.Unlock()
	}()
	if err == nil {
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.follow(l.take)
		}()
		defer func() {
			k.close()
			<-done
		}()
	}
	if err := ready(); err != nil {
		return err
	}
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil
		}
		l.mu.Lock()
		queue, lost := s.queue, s.lost
		s.queue = nil
		l.mu.Unlock()
		for _, e := range queue {
			if err := send(e); err != nil {
				return err
			}
		}
		if lost {
			return nil
		}
	}
}

// take adds the events of a record of the kernel's log, if it is about a process of ours and new.
func (l *Log) take(r record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.number < l.kernel {
		return
	}
	l.kernel = r.number + 1
	killed, ok := r.killed()
	if !ok || !strings.HasPrefix(killed.cgroup, strings.TrimSuffix(l.root, "/")+"/") {
		return
	}
	at := r.when()
	// As in cAdvisor: the one is where a process was ended, the other whose limit was reached.
	l.add(&v1.Event{ContainerName: killed.cgroup, Timestamp: at, EventType: v1.EventOom})
	l.add(&v1.Event{ContainerName: killed.limit, Timestamp: at, EventType: v1.EventOomKill,
		EventData: v1.EventData{OomKill: &v1.OomKillEventData{Pid: killed.pid, ProcessName: killed.name}}})
}
