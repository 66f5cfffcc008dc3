package hosttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/rpc"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/machine"
	"minik8s/internal/network"
	"minik8s/internal/network/overlay"
)

// inside is the environment variable that marks a host.
const inside = "IN_A_HOST_OF_A_LAB"

// Main is what a host runs; elsewhere it returns at once.
func Main() {
	if os.Getenv(inside) == "" {
		return
	}
	h := &Host{pods: map[string]*pod{}}
	s := rpc.NewServer()
	if err := s.Register(h); err != nil {
		fmt.Fprintln(os.Stderr, "a host:", err)
		os.Exit(1)
	}
	s.ServeConn(pipes{os.Stdin, os.Stdout})
	os.Exit(0)
}

// Host is what can be asked of a host. Every method is for net/rpc.
type Host struct {
	mu   sync.Mutex
	n    *network.Network
	stop func()
	pods map[string]*pod
	log  locked
}

type pod struct {
	id   string
	addr netip.Addr
	ns   *os.File
}

// locked is a buffer that several goroutines write.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Plug is an address for eth0 and the way to everywhere else.
type Plug struct {
	Addr    netip.Prefix
	Gateway netip.Addr
}

// Plug configures eth0.
func (h *Host) Plug(p Plug, _ *string) error { return machine.Configure(p.Addr, p.Gateway) }

// Config is that of a host's network.
type Config struct {
	PodCIDR   netip.Prefix
	NodeIP    netip.Addr
	Direct    bool
	VXLANPort uint16
	NoPods    bool
	StateFile string
}

func (h *Host) network(c Config) (*network.Network, error) {
	return network.New(network.Config{PodCIDR: c.PodCIDR, NodeIP: c.NodeIP, Direct: c.Direct, VXLANPort: c.VXLANPort, NoPods: c.NoPods,
		StateFile: c.StateFile, Owner: "lab", Log: slog.New(slog.NewTextHandler(&h.log, nil))})
}

// Up starts the network as a daemon does, with the pods of an earlier run, and keeps it.
func (h *Host) Up(cfg Config, _ *string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.network(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := n.Prepare(ctx); err != nil {
		cancel()
		return err
	}
	for _, p := range h.pods {
		n.Restore(p.id, p.addr)
	}
	if err := n.Setup(ctx); err != nil {
		cancel()
		return err
	}
	kept := make(chan struct{})
	go func() { defer close(kept); n.Keep(ctx) }()
	h.n, h.stop = n, func() { cancel(); <-kept }
	return nil
}

// Down ends the network's daemon, as a crash does: what is in the kernel stays.
func (h *Host) Down(_ int, _ *string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop()
	return h.n.Close()
}

// Clean ends the daemon and takes away all that is its own, by a new process's knowledge.
func (h *Host) Clean(cfg Config, _ *string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop()
	n, err := h.network(cfg)
	if err != nil {
		return err
	}
	return errors.Join(h.n.Close(), n.Teardown(context.Background()), n.Close())
}

// SetPeers calls Network.SetPeers.
func (h *Host) SetPeers(list []overlay.Peer, _ *string) error {
	return h.n.SetPeers(context.Background(), list)
}

// Log is what the network has logged.
func (h *Host) Log(_ int, text *string) error {
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	*text = h.log.b.String()
	return nil
}

// Pod makes a namespace and connects it; the answer is its address.
func (h *Host) Pod(name string, addr *netip.Addr) error {
	p := &pod{id: fmt.Sprintf("%x", sha256.Sum256([]byte(name)))}
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if p.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		p.addr, err = h.n.Connect(p.id)
		return err
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pods[name], *addr = p, p.addr
	return err
}

// ByHand is a pod that a person joins: its range, and that of the other host.
type ByHand struct {
	Pod       string
	Own, Peer netip.Prefix
	Via       netip.Addr
}

// ByHand makes a namespace with a link to the host, and routes.
func (h *Host) ByHand(b ByHand, addr *netip.Addr) error {
	p := &pod{id: b.Pod, addr: b.Own.Addr().Next().Next()}
	router := b.Own.Addr().Next()
	host, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return err
	}
	defer host.Close() //nolint:errcheck // it was only read
	err = onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if p.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "eth0"
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: b.Pod, PeerNamespace: netlink.NsFd(host.Fd())}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		if err := errors.Join(netlink.AddrAdd(veth, &netlink.Addr{IPNet: machine.IPNet(netip.PrefixFrom(p.addr, 24))}), netlink.LinkSetUp(veth)); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: veth.Attrs().Index, Gw: router.AsSlice()})
	})
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(b.Pod)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pods[b.Pod], *addr = p, p.addr
	return errors.Join(netlink.AddrAdd(link, &netlink.Addr{IPNet: machine.IPNet(netip.PrefixFrom(router, 24))}), netlink.LinkSetUp(link),
		netlink.RouteAdd(&netlink.Route{Dst: machine.IPNet(b.Peer), Gw: b.Via.AsSlice()}),
		os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
}

// Sh runs a line of shell on the host; the answer is what it prints.
func (h *Host) Sh(line string, out *string) error {
	b, err := exec.Command("sh", "-c", line).CombinedOutput()
	*out = string(b)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, b)
	}
	return nil
}

// in runs f on a thread in the namespace of a pod; an empty name is the host. Sockets stay where they were made.
func (h *Host) in(name string, f func() error) error {
	if name == "" {
		return f()
	}
	h.mu.Lock()
	p := h.pods[name]
	h.mu.Unlock()
	if p == nil {
		return fmt.Errorf("no pod %q", name)
	}
	return onThread(func() error {
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// onThread runs f on a thread that ends with it. The main thread cannot end, and its namespace is the process's.
func onThread(f func() error) error {
	done := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			again := make(chan struct{})
			go func() { defer close(again); run() }()
			<-again
			return
		}
		done <- f()
	}
	go run()
	return <-done
}
