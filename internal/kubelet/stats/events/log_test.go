package events

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/google/cadvisor/info/v1"

	"minik8s/internal/kubelet/cri"
)

// runtime is one whose containers the test changes.
type runtime struct {
	mu      sync.Mutex
	all     map[string]cri.Container
	changes chan cri.Event
}

func (r *runtime) Events(context.Context) <-chan cri.Event { return r.changes }

func (r *runtime) Pods(ctx context.Context) ([]cri.Pod, error) {
	var out []cri.Pod
	for _, uid := range []string{"a", "b"} {
		p, _ := r.Pod(ctx, uid) //nolint:errcheck // there is none
		out = append(out, p)
	}
	return out, nil
}

func (r *runtime) Pod(_ context.Context, uid string) (cri.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := cri.Pod{UID: uid}
	for _, c := range r.all {
		if c.PodUID == uid {
			p.Containers = append(p.Containers, c)
		}
	}
	return p, nil
}

// put changes a container; without a state it is removed. said is whether the runtime says so.
func (r *runtime) put(pod, id string, state cri.ContainerState, at int64, said bool) {
	r.mu.Lock()
	c := r.all[id]
	c.ID, c.PodUID, c.Cgroup, c.State = id, pod, "/m/pod"+pod+"/"+id, state
	switch state {
	case cri.Running:
		c.StartedAt = time.Unix(at, 0)
	case cri.Exited:
		c.FinishedAt = time.Unix(at, 0)
	}
	if r.all[id] = c; at == 0 {
		delete(r.all, id)
	}
	r.mu.Unlock()
	if said {
		r.changes <- cri.Event{PodUID: pod, ContainerID: id}
		r.changes <- cri.Event{PodUID: "none"} // the other one was looked at then
	}
}

var all = map[v1.EventType]bool{v1.EventContainerCreation: true, v1.EventContainerDeletion: true, v1.EventOom: true, v1.EventOomKill: true}

func words(list []*v1.Event) (out []string) {
	for _, e := range list {
		out = append(out, e.ContainerName+" "+string(e.EventType))
	}
	return out
}

const (
	created = " containerCreation"
	deleted = " containerDeletion"
)

// begin runs a log with a runtime, which ends with the test.
func begin(t *testing.T, r *runtime) *Log {
	t.Helper()
	l := New(r, "/m", slog.New(slog.DiscardHandler))
	go l.Run(t.Context())
	t.Cleanup(func() { close(r.changes) })
	synctest.Wait()
	return l
}

func TestBeginsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runtime{all: map[string]cri.Container{}, changes: make(chan cri.Event)}
		r.put("a", "early", cri.Exited, 30, false)
		r.all["early"] = cri.Container{ID: "early", PodUID: "a", Cgroup: "/m/poda/early", State: cri.Exited, StartedAt: time.Unix(10, 0), FinishedAt: time.Unix(30, 0)}
		r.put("a", "runs", cri.Running, 20, false)
		l := begin(t, r)
		is := func(what string, q Query, want ...string) {
			t.Helper()
			synctest.Wait()
			if got := words(l.Past(q)); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		everything := Query{Types: all, Container: "/", Below: true}
		is("what was there", everything, "/m/poda/early"+created, "/m/poda/runs"+created, "/m/poda/early"+deleted) // by time
		r.put("b", "new", cri.Created, 40, true)
		r.put("b", "new", cri.Running, 41, true)
		r.put("b", "new", cri.Running, 41, true)
		is("a new one", Query{Types: all, Container: "/m/podb", Below: true}, "/m/podb/new"+created)
		r.put("b", "new", cri.Exited, 42, true)
		r.put("b", "new", 0, 0, true)
		is("it has ended", Query{Types: all, Container: "/m/podb/new"}, "/m/podb/new"+created, "/m/podb/new"+deleted)
		r.put("a", "runs", 0, 0, true)
		is("one is gone at once", Query{Types: all, Container: "/m/poda/runs"}, "/m/poda/runs"+created, "/m/poda/runs"+deleted)
		is("only itself", Query{Types: all, Container: "/m/poda"})
		is("not what begins alike", Query{Types: all, Container: "/m/po", Below: true})
		is("no kind", Query{Container: "/", Below: true})
		is("a time", Query{Types: all, Container: "/", Below: true, Start: time.Unix(20, 0), End: time.Unix(30, 0)}, "/m/poda/runs"+created, "/m/poda/early"+deleted)
		is("the newest", Query{Types: map[v1.EventType]bool{v1.EventContainerCreation: true}, Container: "/", Below: true, Max: 2}, "/m/poda/runs"+created, "/m/podb/new"+created)
		// A container that could not be started, and a gap, after which everything is looked at.
		r.mu.Lock()
		r.all["bad"] = cri.Container{ID: "bad", PodUID: "b", Cgroup: "/m/podb/bad", State: cri.Exited, StartError: "no", StartedAt: time.Unix(50, 0), FinishedAt: time.Unix(50, 0)}
		r.mu.Unlock()
		r.put("a", "unsaid", cri.Running, 51, false)
		r.changes <- cri.Event{}
		is("after a gap", Query{Types: all, Container: "/", Below: true, Start: time.Unix(45, 0), End: time.Unix(60, 0)}, "/m/poda/unsaid"+created)
	})
}

func TestFewAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runtime{all: map[string]cri.Container{}, changes: make(chan cri.Event)}
		l := begin(t, r)
		for i := range int64(kept) {
			r.put("a", "c", cri.Running, 2*i+1, true)
			r.put("a", "c", cri.Exited, 2*i+2, true)
			r.put("a", "c", 0, 0, true)
		}
		synctest.Wait()
		got := l.Past(Query{Types: all, Container: "/", Below: true})
		if len(got) > kept || len(got) < kept*8/10 || !got[len(got)-1].Timestamp.Equal(time.Unix(2*kept, 0)) {
			t.Errorf("%d events", len(got))
		}
		if len(l.known) != 0 {
			t.Errorf("%d containers are still known", len(l.known))
		}
	})
}

// Who follows gets what happens from then on, once; who is too slow is at the end.
func TestFollow(t *testing.T) {
	r := &runtime{all: map[string]cri.Container{}, changes: make(chan cri.Event)}
	r.put("a", "before", cri.Running, 1, false)
	l := New(r, "/m", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { defer close(ran); l.Run(ctx) }()
	r.changes <- cri.Event{PodUID: "b"} // it has looked once then
	type follower struct {
		got  chan string
		held chan struct{}
		end  chan error
	}
	follow := func(q Query, fail error) *follower {
		f := &follower{make(chan string), make(chan struct{}, 1), make(chan error, 1)}
		ready := make(chan struct{})
		go func() {
			f.end <- l.Follow(ctx, q, func() error { close(ready); return nil }, func(e *v1.Event) error {
				select {
				case f.held <- struct{}{}:
				default:
				}
				f.got <- words([]*v1.Event{e})[0]
				return fail
			})
		}()
		<-ready
		return f
	}
	fast := follow(Query{Types: all, Container: "/m/poda", Below: true, Max: 1}, nil)
	gone := errors.New("gone")
	leaves := follow(Query{Types: all, Container: "/", Below: true}, gone)
	r.put("b", "other", cri.Running, 2, true)
	if got := <-leaves.got; got != "/m/podb/other"+created {
		t.Error(got)
	}
	if err := <-leaves.end; err != gone {
		t.Error(err)
	}
	r.put("a", "c", cri.Running, 3, true)
	if got := <-fast.got; got != "/m/poda/c"+created {
		t.Error(got)
	}
	r.put("a", "c", cri.Exited, 4, true)
	if got := <-fast.got; got != "/m/poda/c"+deleted {
		t.Error(got)
	}
	slow := follow(Query{Types: all, Container: "/m/podb", Below: true}, nil)
	r.put("b", "first", cri.Running, 5, true)
	<-slow.held // it has taken that, and sends it for long
	for i := range int64(behind) {
		r.put("b", "d", cri.Running, 6+i, true)
		r.put("b", "d", 0, 0, true)
	}
	n := 0 // it gets what was remembered for it, and no more
	for ended := false; !ended; {
		select {
		case <-slow.got:
			n++
		case err := <-slow.end:
			if ended = true; err != nil {
				t.Error(err)
			}
		}
	}
	if n != 1+behind {
		t.Errorf("who is too slow got %d events", n)
	}
	cancel()
	if err := <-fast.end; err != nil {
		t.Error(err)
	}
	close(r.changes)
	<-ran
	if len(l.streams) != 0 {
		t.Error("streams are left")
	}
}

// What the kernel writes is understood, each record once, and of others nothing is said.
func TestKernel(t *testing.T) {
	l := New(nil, "/m", slog.New(slog.DiscardHandler))
	for _, line := range []string{
		"3,7,5000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/m/poda,task_memcg=/m/poda/c,task=a, name=b,pid=12,uid=0\n SUBSYSTEM=memory\n",
		"3,7,5000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/m/poda,task_memcg=/m/poda/c,task=again,pid=12,uid=0\n",
		"3,8,6000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=x,mems_allowed=0,global_oom,task_memcg=/m/poda/d,task=sh,pid=13,uid=1000\n",
		"3,9,7000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/others,task_memcg=/others,task=secret,pid=14,uid=0\n",
		"3,10,8000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=x,mems_allowed=0,global_oom,task_memcg=/mine,task=secret,pid=15,uid=0\n",
		"6,11,8000000,-;Memory cgroup out of memory: Killed process 14 (secret)\n",
	} {
		r, ok := parse(line)
		if !ok {
			t.Fatal("not read:", line)
		}
		l.take(r)
	}
	for _, line := range []string{"", "3,x,5,-;text", "3,1;text", "text"} {
		if _, ok := parse(line); ok {
			t.Errorf("%q is read", line)
		}
	}
	want := []string{"/m/poda/c oom", "/m/poda oomKill", "/m/poda/d oom", "/ oomKill"}
	if got := words(l.events); !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	if k := l.events[1].EventData.OomKill; *k != (v1.OomKillEventData{Pid: 12, ProcessName: "a, name=b"}) {
		t.Errorf("%+v", k)
	}
	if apart := l.events[2].Timestamp.Sub(l.events[0].Timestamp); (apart - time.Second).Abs() > 100*time.Millisecond {
		t.Errorf("the times of records are %v apart, want a second", apart)
	}
}
