package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/disk"
	"minik8s/internal/kubelet/work"
	"minik8s/internal/machine"
)

// TestMain removes what a test that is cut short leaves behind.
func TestMain(m *testing.M) { machine.Run(m.Run) }

// fakeNetwork assigns addresses and makes no links.
type fakeNetwork struct {
	mu        sync.Mutex
	ready     bool
	refusal   error
	next      netip.Addr
	connected map[string]netip.Addr
	during    func(id string) // is called once, while a sandbox is connected
}

func (n *fakeNetwork) set(ready bool, refusal error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready, n.refusal = ready, refusal
}

func (n *fakeNetwork) Ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready
}

func (n *fakeNetwork) Connect(id string) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	inside, err := os.Readlink("/proc/thread-self/ns/net")
	if host, herr := os.Readlink("/proc/self/ns/net"); err != nil || herr != nil || inside == host {
		return netip.Addr{}, errors.New("the calling thread is not in the sandbox")
	}
	if n.refusal != nil {
		return netip.Addr{}, n.refusal
	}
	if f := n.during; f != nil {
		n.during = nil
		f(id)
	}
	n.next = n.next.Next()
	n.connected[id] = n.next
	return n.next, nil
}

func (n *fakeNetwork) Disconnect(id string, _ netip.Addr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.connected, id)
	return nil
}

// newPool is a pool in a directory of its own. At the end nothing may be left of its sandboxes.
func newPool(t *testing.T) (context.Context, *Pool, *fakeNetwork) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("sandboxes need root")
	}
	dir, err := os.MkdirTemp("", "minik8s-test-")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	run := filepath.Join(dir, "run")
	if err := disk.Private(filepath.Join(run, "slots"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	network := &fakeNetwork{next: netip.MustParseAddr("10.0.0.1"), connected: map[string]netip.Addr{}}
	p := New(Config{Dir: filepath.Join(run, "slots"), Network: network, Work: work.New(2), Warm: 1, Log: log})
	t.Cleanup(func() {
		p.Stop()
		p.Drop()
		if ids, err := p.List(); err != nil || len(ids) > 0 || len(network.connected) > 0 {
			t.Errorf("left behind: %q, %v, %v", ids, network.connected, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return ctx, p, network
}

// first is the id of the sandbox that Get gives out next.
func (p *Pool) first() string {
	p.warm.mu.Lock()
	defer p.warm.mu.Unlock()
	return p.warm.ready[0].ID
}

// waitUntilWarm waits until a sandbox has been made ahead.
func (p *Pool) waitUntilWarm(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); p.Waiting() < p.cfg.Warm; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no sandbox was made ahead")
		}
	}
}

func TestASandboxIsWholeOrNotThere(t *testing.T) {
	ctx, p, network := newPool(t)
	if _, err := p.Get(ctx, Ordinary); err == nil || !strings.Contains(err.Error(), "no pod range") {
		t.Errorf("before there is a network: %v", err)
	}
	host, err := p.Get(ctx, []string{"ipc"}) // on the host's network it needs none
	if err != nil || !p.Whole(host) || host.Addr.IsValid() {
		t.Fatalf("%+v, %v", host, err)
	}
	refusal := errors.New("no free address")
	network.set(true, refusal)
	if _, err := p.Get(ctx, Ordinary); !errors.Is(err, refusal) {
		t.Errorf("an address that is refused: %v", err)
	}
	if ids, err := p.List(); err != nil || len(ids) != 1 || ids[0] != host.ID {
		t.Errorf("left behind by a failure: %q, %v", ids, err)
	}
	network.set(true, nil)
	s, err := p.Get(ctx, Ordinary)
	if err != nil || !p.Whole(s) || !s.Addr.IsValid() || p.ScratchDir(s.ID) == "" {
		t.Fatalf("%+v, %v", s, err)
	}
	before, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Enter(s.ID, []string{"uts"}, func() error { return unix.Sethostname([]byte("inside")) }); err != nil {
		t.Error(err)
	}
	if after, err := os.Hostname(); err != nil || after != before {
		t.Errorf("the host is called %q, %v", after, err)
	}
	if err := Unmount(filepath.Join(p.Dir(s.ID), "ipc")); err != nil {
		t.Fatal(err)
	}
	if p.Whole(s) {
		t.Error("it is whole without one of its namespaces")
	}
	for _, x := range []*Sandbox{host, s, s, {ID: "0123456789abcdef"}} { // again, and what was never there
		if err := p.Remove(x); err != nil {
			t.Error(err)
		}
	}
}

func TestSandboxesAreMadeAhead(t *testing.T) {
	ctx, p, network := newPool(t)
	p.Start(ctx) // nothing happens before there is a network
	network.set(true, nil)
	working := p.Busy()
	p.Kick()
	if n := p.Waiting(); n != 0 {
		t.Errorf("%d were made while the runtime was at work", n)
	}
	working()
	p.waitUntilWarm(t)
	ahead := p.first()
	s, err := p.Get(ctx, Ordinary)
	if err != nil || s.ID != ahead {
		t.Fatalf("%+v, %v; want %s", s, err, ahead)
	}
	p.Kick()
	p.waitUntilWarm(t)
	damaged := p.first()
	if err := Unmount(filepath.Join(p.Dir(damaged), "net")); err != nil {
		t.Fatal(err)
	}
	other, err := p.Get(ctx, Ordinary)
	if err != nil || other.ID == damaged || !p.Whole(other) {
		t.Errorf("a damaged one is given out: %+v, %v", other, err)
	}
	for _, x := range []*Sandbox{s, other} {
		if err := p.Remove(x); err != nil {
			t.Error(err)
		}
	}
}

// A sandbox that was being made when the network's range changed is not used.
func TestDropMeansThoseInTheMakingToo(t *testing.T) {
	ctx, p, network := newPool(t)
	var stale string
	network.during = func(id string) {
		stale = id
		p.Drop()
	}
	network.set(true, nil)
	p.Start(ctx)
	p.waitUntilWarm(t)
	network.mu.Lock()
	defer network.mu.Unlock()
	if first := p.first(); first == stale || len(network.connected) != 1 {
		t.Errorf("made for the old range %s, ready is %s, connected are %v", stale, first, network.connected)
	}
}
