package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/google/cadvisor/info/v1"
	v2 "github.com/google/cadvisor/info/v2"
)

// cluster is nodes with a container c that uses half a core each, and itself two.
type cluster struct {
	mu    sync.Mutex
	now   time.Time
	asked map[string]int
	down  map[string]bool
	reset bool // the counters begin anew
	gone  bool // the container has ended
	// apart: the machine is told of elsewhere than its containers, as by a cAdvisor.
	apart bool
	// silent nodes accept a question and never answer.
	silent func(node string) bool
}

func (c *cluster) sample(at time.Time, cores float64) *v2.ContainerStats {
	used := cores * float64(at.Sub(time.Unix(0, 0)))
	if c.reset {
		used = 1
	}
	return &v2.ContainerStats{Timestamp: at, Cpu: &v1.CpuStats{Usage: v1.CpuUsage{Total: uint64(used)}}, Memory: &v1.MemoryStats{WorkingSet: 7 << 20}}
}

// RoundTrip implements http.RoundTripper, as kubelets do: who asks for two samples gets two.
func (c *cluster) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.silent != nil && c.silent(req.URL.Host) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[req.URL.Host]++
	if c.down[req.URL.Host] {
		return nil, errors.New("no route to host")
	}
	times := []time.Time{c.now}
	if req.URL.Query().Get("count") != "1" {
		times = []time.Time{c.now.Add(-time.Second), c.now}
	}
	switch req.URL.Path {
	case "/api/v2.1/stats", "/api/v2.1/stats/":
	case "/api/v2.1/machinestats":
		var out []v2.MachineStats
		for age := range 64 { // the oldest first
			s := c.sample(c.now.Add(time.Duration(age-63)*time.Second), 2)
			out = append(out, v2.MachineStats{Timestamp: s.Timestamp, Cpu: s.Cpu, Memory: s.Memory})
		}
		return answer(out)
	default:
		return &http.Response{StatusCode: 404, Body: io.NopCloser(strings.NewReader(req.URL.Path))}, nil
	}
	out := map[string]v2.ContainerInfo{}
	for cgroup, cores := range map[string]float64{"/": 2, "/minik8s/podu/c": 0.5} {
		if cgroup == machine && c.apart || cgroup != machine && c.gone {
			continue
		}
		info := v2.ContainerInfo{}
		for _, at := range times {
			info.Stats = append(info.Stats, c.sample(at, cores))
		}
		out[cgroup] = info
	}
	return answer(out)
}

func answer(x any) (*http.Response, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(text)))}, nil
}

func newCluster(t *testing.T) (*cluster, *Collector) {
	c := &cluster{now: time.Unix(1e6, 0), asked: map[string]int{}, down: map[string]bool{}}
	m := New(Config{Kubelets: c, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
	m.now = func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
	t.Cleanup(m.Close)
	return c, m
}

func (c *cluster) sleep(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

func read(t *testing.T, m *Collector, nodes ...string) map[string]Node {
	t.Helper()
	got, err := m.Nodes(t.Context(), nodes)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func expect(t *testing.T, what string, u Usage, cores float64, window time.Duration) {
	t.Helper()
	if math.Abs(u.CPU-cores) > cores/1000 || u.Window != window {
		t.Errorf("%s: %v cores over %v, want %v over %v", what, u.CPU, u.Window, cores, window)
	}
}

// The story of a question, and of those after it.
func TestCollector(t *testing.T) {
	c, m := newCluster(t)
	first := read(t, m, "a", "b")
	for _, n := range []string{"a", "b"} {
		expect(t, "the first question has an answer", first[n].Containers["c"], 0.5, time.Second)
		expect(t, "of the node too", first[n].Usage, 2, time.Second)
	}
	read(t, m, "a")
	if c.asked["a"] != 1 {
		t.Errorf("the node was asked %d times within a second", c.asked["a"])
	}
	c.sleep(10 * time.Second)
	expect(t, "the window grows", read(t, m, "a")["a"].Containers["c"], 0.5, 11*time.Second)
	for range 30 {
		c.sleep(time.Second)
		read(t, m, "a")
	}
	expect(t, "to what was asked for, and no further", read(t, m, "a")["a"].Containers["c"], 0.5, 15*time.Second)
	if u := read(t, m, "a")["a"].Containers["c"]; u.Memory != 7<<20 || !u.Time.Equal(c.now) {
		t.Errorf("%+v", u)
	}
	if c.asked["b"] != 1 {
		t.Errorf("a node that nobody asks for was asked %d times", c.asked["b"])
	}
	c.sleep(10 * time.Minute)
	expect(t, "a sample of long ago is none", read(t, m, "a")["a"].Containers["c"], 0.5, time.Second)
}

// A long window is held also where somebody asks each second: what is kept is bounded, and so thinned.
func TestLongWindow(t *testing.T) {
	c, m := newCluster(t)
	m.cfg.Window = time.Minute
	for i := range 300 {
		c.sleep(time.Second)
		u := read(t, m, "a")["a"].Containers["c"]
		if i < 60 {
			continue
		}
		if math.Abs(u.CPU-0.5) > 0.001 || u.Window < 50*time.Second || u.Window > 75*time.Second {
			t.Fatalf("after %d s: %v cores over %v", i, u.CPU, u.Window)
		}
	}
}

func TestNodesThatDoNotAnswer(t *testing.T) {
	c, m := newCluster(t)
	c.down["b"] = true
	if got := read(t, m, "a", "b"); len(got) != 1 || got["a"].Usage.CPU == 0 {
		t.Errorf("%+v", got)
	}
	c.sleep(2 * time.Second)
	read(t, m, "b")
	if c.asked["b"] != 1 {
		t.Error("it is asked again too soon")
	}
	c.down["b"] = false
	c.sleep(pause)
	expect(t, "it is back", read(t, m, "b")["b"].Usage, 2, time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Nodes(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// However many nodes accept a question and never answer, the others are asked beside them, and all is known when the time for
// one answer is over.
func TestSilentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{now: time.Unix(1e6, 0), asked: map[string]int{}, down: map[string]bool{}, silent: func(n string) bool { return strings.HasPrefix(n, "silent") }}
		m := New(Config{Kubelets: c, Log: slog.New(slog.DiscardHandler)})
		defer m.Close()
		var names []string
		for i := range 10 * atOnce {
			names = append(names, fmt.Sprint("silent", i))
		}
		names = append(names, "a", "b")
		began := time.Now()
		got := read(t, m, names...)
		if took := time.Since(began); len(got) != 2 || got["a"].Usage.CPU == 0 || took != answerTime {
			t.Errorf("%d nodes have answered, after %v", len(got), took)
		}
	})
}

// No more than so many answers are read at a time.
func TestAnswersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		reading, most := 0, 0
		base, forget := register(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: &counted{enter: func() { mu.Lock(); defer mu.Unlock(); reading++; most = max(most, reading) },
				leave: func() { mu.Lock(); defer mu.Unlock(); reading-- }}}, nil
		}))
		defer forget()
		var asking sync.WaitGroup
		for range 3 * atOnce {
			asking.Go(func() {
				req, err := http.NewRequest(http.MethodGet, base+"n/x", nil)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := (dispatcher{}).RoundTrip(req); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if most != atOnce {
			t.Errorf("%d answers were read at a time, want %d", most, atOnce)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// counted is a body that takes half a second to read.
type counted struct{ enter, leave func() }

func (c *counted) Read([]byte) (int, error) {
	c.enter()
	defer c.leave()
	time.Sleep(500 * time.Millisecond)
	return 0, io.EOF
}

func (c *counted) Close() error { return nil }

func TestCountersThatGoBack(t *testing.T) {
	c, m := newCluster(t)
	read(t, m, "a")
	c.sleep(10 * time.Second)
	c.reset = true
	if u, ok := read(t, m, "a")["a"].Containers["c"]; ok {
		t.Errorf("a rate of two different things: %+v", u)
	}
	c.gone = true
	c.sleep(10 * time.Second)
	if u, ok := read(t, m, "a")["a"].Containers["c"]; ok {
		t.Errorf("it has ended: %+v", u)
	}
}

// A cAdvisor on the nodes is asked in the place of the kubelets.
func TestCAdvisorInPlaceOfKubelets(t *testing.T) {
	c := &cluster{now: time.Now(), asked: map[string]int{}, down: map[string]bool{}, apart: true}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Host = r.Host
		resp, err := c.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body) //nolint:errcheck // the client would say
	}))
	defer s.Close()
	m := New(Config{CAdvisor: strings.Replace(s.URL, "127.0.0.1", NodePlace, 1), Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
		Address: func(_ context.Context, node string) (string, error) {
			if node != "a" {
				return "", errors.New("no such node")
			}
			return "127.0.0.1", nil
		}})
	defer m.Close()
	got := read(t, m, "a", "b")
	expect(t, "the container", got["a"].Containers["c"], 0.5, time.Second)
	expect(t, "the machine", got["a"].Usage, 2, 15*time.Second)
	if _, ok := got["b"]; ok {
		t.Error("a node without an address has answered")
	}
}

func TestContainerID(t *testing.T) {
	for cgroup, want := range map[string]string{
		"/minik8s/burstable/podx-y/0123abc":                                "0123abc",
		"/kubepods.slice/kubepods-podx.slice/cri-containerd-0123abc.scope": "0123abc",
		"/system.slice/docker-0123abc.scope":                               "0123abc",
	} {
		if got := containerID(cgroup); got != want {
			t.Errorf("%s: %s, want %s", cgroup, got, want)
		}
	}
}

// A node that leads elsewhere is not followed: there no time-out would hold, and it could be another machine's kubelet.
func TestRedirectsAreNotFollowed(t *testing.T) {
	followed := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer elsewhere.Close()
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer s.Close()
	m := New(Config{CAdvisor: s.URL, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Address: func(context.Context, string) (string, error) { return "127.0.0.1", nil }})
	defer m.Close()
	if got := read(t, m, "a"); len(got) != 0 || followed {
		t.Errorf("%+v, followed: %v", got, followed)
	}
}

// A node that was removed is dropped while others are still asked about.
func TestNodesThatAreGone(t *testing.T) {
	c, m := newCluster(t)
	read(t, m, "a", "b")
	for range 3 {
		c.sleep(forgotten / 2)
		read(t, m, "a")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes["a"] == nil || len(m.nodes) != 1 {
		t.Errorf("%d nodes are remembered", len(m.nodes))
	}
}
