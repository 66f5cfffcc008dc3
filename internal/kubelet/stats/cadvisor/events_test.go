package cadvisor_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	client1 "github.com/google/cadvisor/client"
	v1 "github.com/google/cadvisor/info/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/stats/cadvisor"
	"minik8s/internal/kubelet/stats/events"
)

// runtime has one container, which ends when the test says so.
type runtime struct {
	changes chan cri.Event
	mu      sync.Mutex
	all     []cri.Container
}

func (r *runtime) Events(context.Context) <-chan cri.Event { return r.changes }
func (r *runtime) Pods(ctx context.Context) ([]cri.Pod, error) {
	p, err := r.Pod(ctx, "u")
	return []cri.Pod{p}, err
}
func (r *runtime) Pod(context.Context, string) (cri.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cri.Pod{UID: "u", Containers: r.all}, nil
}
func (r *runtime) is(id string, state cri.ContainerState, at int64) {
	c := cri.Container{ID: id, PodUID: "u", Cgroup: pod + "/" + id, State: state, StartedAt: began}
	if state == cri.Exited {
		c.FinishedAt = time.Unix(at, 0).UTC()
	}
	r.mu.Lock()
	r.all = []cri.Container{c}
	r.mu.Unlock()
	r.changes <- cri.Event{PodUID: "u"}
	r.changes <- cri.Event{PodUID: "u"} // the other one was looked at then
}

// What the client of v1.3 asks about events is answered, and a stream that the server ends does not end the client's program.
func TestEventsByClient(t *testing.T) {
	r := &runtime{changes: make(chan cri.Event)}
	log := events.New(r, "/m", slog.New(slog.DiscardHandler))
	ran := make(chan struct{})
	go func() { defer close(ran); log.Run(context.Background()) }()
	defer func() { close(r.changes); <-ran }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	open := make(chan struct{}, 1)
	h := &cadvisor.Handler{Events: log, WriteTimeout: time.Minute}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.ServeHTTP(tells{w, open}, req.WithContext(ctx))
	}))
	defer s.Close()
	c, err := client1.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.is("first", cri.Running, 0)
	events := make(chan *v1.Event)
	ended := make(chan error, 1)
	go func() {
		ended <- c.EventStreamingInfo(pod[1:]+"?creation_events=true&deletion_events=1&subcontainers=true&stream=true", events)
	}()
	<-open // what happens from now on
	r.is("first", cri.Exited, 1e9+5)
	select {
	case e := <-events:
		if e.ContainerName != pod+"/first" || e.EventType != v1.EventContainerDeletion || !e.Timestamp.Equal(time.Unix(1e9+5, 0)) {
			t.Errorf("%+v", e)
		}
	case err := <-ended:
		t.Fatal("the stream has ended: ", err)
	}
	for _, x := range []struct {
		what, name string
		want       int
	}{
		{"all", "?all_events=true&subcontainers=true", 2},
		{"one container's", pod[1:] + "/first?all_events=true", 2},
		{"one kind", "?deletion_events=true&subcontainers=true", 1},
		{"no kind", "?subcontainers=true", 0},
		{"the machine alone", "?all_events=true", 0},
		{"the newest", "?all_events=true&subcontainers=true&max_events=1", 1},
		{"since then", "?all_events=true&subcontainers=true&start_time=2001-09-09T01:46:42Z", 1},
		{"before", "?all_events=true&subcontainers=true&end_time=2001-09-09T01:46:42Z", 1},
		{"what is no time", "?all_events=true&subcontainers=true&end_time=yesterday", 2},
	} {
		got, err := c.EventStaticInfo(x.name)
		if err != nil || got == nil || len(got) != x.want {
			t.Errorf("%s: %v, %d events, want %d", x.what, err, len(got), x.want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// tells says when an answer has begun.
type tells struct {
	http.ResponseWriter
	open chan struct{}
}

func (w tells) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w tells) WriteHeader(code int) {
	w.ResponseWriter.WriteHeader(code)
	w.open <- struct{}{}
}
