package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// store keeps events in a map; the rest of client.Interface is not there.
type store struct {
	client.Interface
	mu     sync.Mutex
	events map[string]*corev1.Event
	writes int
}

func (s *store) Create(_ context.Context, obj api.Object, _ client.WriteOptions) (api.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	s.events[obj.GetNamespace()+"/"+obj.GetName()] = obj.(*corev1.Event)
	return obj, nil
}

func (s *store) Patch(_ context.Context, key client.Key, p client.Patch, _ client.WriteOptions) (api.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	ev := s.events[key.Namespace+"/"+key.Name]
	if ev == nil {
		return nil, apierrors.NewNotFound(key.Kind.GR(), key.Name)
	}
	ev = ev.DeepCopy()
	if err := json.Unmarshal(p.Data, ev); err != nil {
		return nil, err
	}
	s.events[key.Namespace+"/"+key.Name] = ev
	return ev, nil
}

// written runs the recorder over what was queued and returns the store.
func written(t *testing.T, record func(r *Recorder, tick func(time.Duration))) *store {
	t.Helper()
	s := &store{events: map[string]*corev1.Event{}}
	r := New(s, "kubelet", "node1", nil)
	now := time.Unix(1000, 0)
	r.now = func() time.Time { return now }
	record(r, func(d time.Duration) { now = now.Add(d) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx)
	return s
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u-1"}}
}

func TestEventIsComplete(t *testing.T) {
	s := written(t, func(r *Recorder, _ func(time.Duration)) {
		r.Event(pod("web"), corev1.EventTypeNormal, "Started", "Started container %s", "a")
	})
	if len(s.events) != 1 {
		t.Fatalf("%d events", len(s.events))
	}
	for _, ev := range s.events {
		if ev.InvolvedObject.Kind != "Pod" || ev.InvolvedObject.APIVersion != "v1" || ev.InvolvedObject.UID != "u-1" ||
			ev.Message != "Started container a" || ev.Source.Host != "node1" || ev.ReportingController != "kubelet" ||
			ev.Count != 1 || ev.FirstTimestamp.IsZero() || !strings.HasPrefix(ev.Name, "web.") {
			t.Errorf("%+v", ev)
		}
	}
}

func TestRepeatsAreCounted(t *testing.T) {
	s := written(t, func(r *Recorder, tick func(time.Duration)) {
		for range 5 {
			r.Event(pod("web"), corev1.EventTypeWarning, "BackOff", "Back-off %s", "100% restarting")
			tick(time.Second)
		}
	})
	if len(s.events) != 1 {
		t.Fatalf("%d events", len(s.events))
	}
	for _, ev := range s.events {
		if ev.Count != 5 || !ev.LastTimestamp.Equal(&metav1.Time{Time: time.Unix(1004, 0)}) || !strings.Contains(ev.Message, "100% restarting") {
			t.Errorf("%+v", ev)
		}
	}
}

func TestSimilarAreCombinedAndFloodsEnd(t *testing.T) {
	s := written(t, func(r *Recorder, _ func(time.Duration)) {
		for i := range 1000 {
			r.Event(pod("web"), corev1.EventTypeWarning, "Failed", "try %d", i)
		}
	})
	if len(s.events) != combineAfter || s.writes != burst {
		t.Errorf("%d events by %d writes, want %d by %d", len(s.events), s.writes, combineAfter, burst)
	}
}

func TestBudgetComesBack(t *testing.T) {
	s := written(t, func(r *Recorder, tick func(time.Duration)) {
		for range burst + 5 {
			r.Event(pod("web"), corev1.EventTypeWarning, "Failed", "x")
		}
		tick(refill)
		r.Event(pod("web"), corev1.EventTypeWarning, "Failed", "x")
		r.Event(pod("web"), corev1.EventTypeWarning, "Failed", "x")
	})
	if s.writes != burst+1 {
		t.Errorf("%d writes, want %d", s.writes, burst+1)
	}
}

func TestFullQueueDropsAndCounts(t *testing.T) {
	r := New(&store{events: map[string]*corev1.Event{}}, "x", "", nil)
	for i := range queueLen + 7 {
		r.Event(pod(fmt.Sprint(i)), corev1.EventTypeNormal, "A", "b")
	}
	if r.Dropped() != 7 {
		t.Errorf("dropped %d", r.Dropped())
	}
	if oldest, _ := r.next(); oldest.ref.Name != "7" {
		t.Errorf("the oldest that waits is %s", oldest.ref.Name)
	}
	var none *Recorder
	none.Event(pod("x"), corev1.EventTypeNormal, "A", "b") // a part without a recorder is not an error
}

func TestExpiredEventBeginsAnew(t *testing.T) {
	s := &store{events: map[string]*corev1.Event{}}
	r := New(s, "kubelet", "", nil)
	c := newCorrelator()
	rec := record{ref: Ref(pod("web")), eventtype: "Normal", reason: "A", msg: "b", at: time.Unix(5, 0)}
	r.write(t.Context(), c, rec)
	clear(s.events)
	r.write(t.Context(), c, rec)
	if len(s.events) != 1 {
		t.Errorf("%d events", len(s.events))
	}
}

func TestMemoriesAreBounded(t *testing.T) {
	c := newCorrelator()
	for i := range maxRemembered + 100 {
		rec := record{ref: corev1.ObjectReference{Name: fmt.Sprint(i)}, at: time.Unix(int64(i), 0)}
		v := c.decide(rec)
		c.wrote(v.id, &corev1.Event{}, rec.at)
	}
	if len(c.written) > maxRemembered || len(c.similar) > maxRemembered || len(c.budgets) > maxRemembered {
		t.Errorf("%d, %d, %d", len(c.written), len(c.similar), len(c.budgets))
	}
}

// refusing answers every write with an error.
type refusing struct {
	client.Interface
	err error
}

func (r refusing) Create(context.Context, api.Object, client.WriteOptions) (api.Object, error) {
	return nil, r.err
}

// Events that a deposed leader still has to write are refused as a matter of course; another failure is a warning.
func TestRefusals(t *testing.T) {
	for reason, warned := range map[metav1.StatusReason]bool{api.ReasonDeposed: false, metav1.StatusReasonInternalError: true} {
		var log bytes.Buffer
		r := New(refusing{err: &apierrors.StatusError{ErrStatus: metav1.Status{Reason: reason}}}, "x", "", slog.New(slog.NewTextHandler(&log, nil)))
		r.Event(pod("web"), corev1.EventTypeNormal, "Started", "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.Run(ctx)
		if got := log.Len() > 0; got != warned {
			t.Errorf("%s: the log is %q", reason, log.String())
		}
	}
}
