package roles

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/network"
)

// ErrMoved ends Run when this machine has got another address than the one that its Node and certificates have. A new start
// takes that one everywhere, as any start does, so no part has to be able to change it while it runs: see Again.
var ErrMoved = errors.New("this machine has another address")

// addressSettles is how long the addresses have to stay as they are before the machine counts as moved: a renewed lease may
// take one away and give it back. While there is no other one nothing happens, however long that takes. All nodes are to follow
// within a second.
const addressSettles = 300 * time.Millisecond

// runAddress ends with ErrMoved when the address that was found at the start has gone from this machine, and its way to the
// cluster begins at another one. While it has no way at all it waits for one.
func (d *Daemon) runAddress(ctx context.Context, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := make(chan struct{}, 1)
	poke := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	go d.hearAddresses(ctx, poke)
	ready()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			settled = time.After(addressSettles)
		case <-settled:
			settled = nil
			if now := movedTo(d.cfg.NodeIP, ownAddresses(), routedIP(d.wayOut())); now.IsValid() {
				return fmt.Errorf("%w: it was %s and is %s", ErrMoved, d.cfg.NodeIP, now)
			}
		}
	}
}

// listenAgain is how long to wait when the kernel's events cannot be heard.
const listenAgain = 5 * time.Second

// hearAddresses calls changed when this machine's addresses may have changed, also before it began to listen, until ctx ends.
func (d *Daemon) hearAddresses(ctx context.Context, changed func()) {
	for said := false; ctx.Err() == nil; {
		if err := network.WatchAddresses(ctx, changed, changed); err != nil && !said {
			said = true
			d.log.Warn("a change of this machine's address may not be noticed at once", "error", err)
		}
		select {
		case <-time.After(listenAgain):
		case <-ctx.Done():
		}
	}
}

// wayOut is the server whose direction tells a machine's address, as someMaster when it was found; what masters there are may
// have changed meanwhile.
func (d *Daemon) wayOut() string {
	if list := d.balancer.Upstreams(); d.cfg.Server == "" && d.identity != nil && len(list) > 0 {
		return "https://" + list[0]
	}
	return d.cfg.Server
}

// movedTo is the address that a machine has now in the place of was: that of its routes, if it is one of its own, and the former
// is not any more. Invalid: it has not moved.
func movedTo(was netip.Addr, own []netip.Addr, routed netip.Addr) netip.Addr {
	if slices.Contains(own, was) || !slices.Contains(own, routed) {
		return netip.Addr{}
	}
	return routed
}

// ownAddresses are those of this machine's links but lo, where it has addresses of the cluster's.
func ownAddresses() (out []netip.Addr) {
	links, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, link := range links {
		if link.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := link.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok {
					out = append(out, ip.Unmap())
				}
			}
		}
	}
	return out
}

// Again starts the program anew in the same process, as it was started: for whoever watches it, it is still the same. It returns
// only if that fails.
func Again() error {
	const program = "/proc/self/exe" // also when the file has been replaced by a newer one, or removed
	return os.NewSyscallError("exec", unix.Exec(program, os.Args, os.Environ()))
}
