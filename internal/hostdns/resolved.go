package hostdns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// The names are those of systemd's org.freedesktop.resolve1(5).
const (
	service = "org.freedesktop.resolve1"
	object  = dbus.ObjectPath("/org/freedesktop/resolve1")
	manager = "org.freedesktop.resolve1.Manager"
)

// stub is where systemd-resolved answers the programs of its machine.
const stub = "127.0.0.53"

// ErrNoResolved means that this machine's programs do not ask systemd-resolved.
var ErrNoResolved = errors.New("systemd-resolved is not asked here")

// callTime bounds a call; resolved answers at once.
const callTime = 10 * time.Second

// Resolved is a connection to systemd-resolved.
type Resolved struct {
	bus     *dbus.Conn
	signals chan *dbus.Signal
}

// Resolved connects to systemd-resolved. The error is ErrNoResolved where the file does not lead to it. Where it only does not
// run now, it is another one: a line in the file would have it ask ours alone once it is back.
func (f File) Resolved(ctx context.Context) (*Resolved, error) {
	text, _, err := f.read()
	if err != nil {
		return nil, err
	}
	if rest, _, _ := f.cut(text); !slices.Contains(serversOf(rest), stub) {
		return nil, ErrNoResolved
	}
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("host-dns: the system bus, for systemd-resolved: %w", err)
	}
	r := &Resolved{bus: bus, signals: make(chan *dbus.Signal, 8)}
	bus.Signal(r.signals)
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err = bus.AddMatchSignalContext(ctx, dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchInterface("org.freedesktop.DBus"),
		dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, service))
	var there bool
	if err == nil {
		err = bus.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, service).Store(&there)
	}
	if err == nil && !there {
		err = errors.New("it does not run")
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("host-dns: systemd-resolved: %w", err)
	}
	return r, nil
}

// Close ends the connection. What Keep has said stays until the link is removed.
func (r *Resolved) Close() {
	r.bus.Close() //nolint:errcheck // nothing was left to send
}

// Keep has resolved ask server by a link until ctx ends: for names of the domain alone, and for all others beside the
// servers of other links. So where ours is away, the others still answer. It says so again when resolved has been started
// again. It is undone by removing the link.
func (r *Resolved) Keep(ctx context.Context, link int, server netip.Addr, domain string) error {
	for {
		if err := r.tie(ctx, link, server, domain); err != nil && ctx.Err() == nil && !ended(err) {
			return fmt.Errorf("host-dns: systemd-resolved: %w", err)
		}
		for again := false; !again; {
			select {
			case s, ok := <-r.signals:
				switch {
				case ctx.Err() != nil: // the connection ends with it
					return nil
				case !ok:
					return errors.New("host-dns: the system bus has closed the connection")
				}
				// Name, old and new owner: it has one now.
				again = s.Name == "org.freedesktop.DBus.NameOwnerChanged" && len(s.Body) == 3 && s.Body[0] == service && s.Body[2] != ""
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// ended reports whether resolved ended while it was asked. It is told again when it is back.
func ended(err error) bool {
	var e dbus.Error
	return errors.As(err, &e) && slices.Contains([]string{"org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.ServiceUnknown",
		"org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.Disconnected"}, e.Name)
}

// linkServer and linkDomain are a server and a domain as resolved takes them.
type linkServer struct {
	Family  int32
	Address []byte
}

type linkDomain struct {
	Name        string
	RoutingOnly bool // it says who is asked, and is not appended to short names
}

func (r *Resolved) tie(ctx context.Context, link int, server netip.Addr, domain string) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	family := int32(unix.AF_INET)
	if server.Is6() {
		family = unix.AF_INET6
	}
	for _, call := range []struct {
		method string
		what   any
	}{
		{"SetLinkLLMNR", "no"}, {"SetLinkMulticastDNS", "no"}, // nobody else is on the link
		{"SetLinkDNSSEC", "no"},     // the cluster's names are signed by nobody
		{"SetLinkDNSOverTLS", "no"}, // ours does not speak it, also where the machine's do
		{"SetLinkDNS", []linkServer{{family, server.AsSlice()}}},
		{"SetLinkDomains", []linkDomain{{domain, true}}},
		{"SetLinkDefaultRoute", true}, // hosts of DNS objects have any name
	} {
		if err := r.bus.Object(service, object).CallWithContext(ctx, manager+"."+call.method, 0, int32(link), call.what).Err; err != nil {
			return fmt.Errorf("%s: %w", call.method, err)
		}
	}
	return nil
}

// uplinks names the servers that systemd-resolved asks.
const uplinks = "/run/systemd/resolve/resolv.conf"

// Uplinks is the file with the servers that systemd-resolved asks, without those that this machine's loopback device
// answers for: ours. The error is fs.ErrNotExist where resolved does not run.
func Uplinks() ([]byte, error) { return uplinksOf(uplinks, ownLoopback()) }

func uplinksOf(path string, own []netip.Addr) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		servers := serversOf(line)
		if len(servers) == 1 {
			if a, err := netip.ParseAddr(servers[0]); err == nil && slices.Contains(own, a) {
				continue
			}
		}
		out.Write(line)
	}
	return out.Bytes(), nil
}

// ownLoopback are the addresses of lo; none where they cannot be read.
func ownLoopback() (out []netip.Addr) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return nil
	}
	addrs, err := lo.Addrs()
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr())
		}
	}
	return out
}

// serversOf are the servers that a text names.
func serversOf(text []byte) (out []string) {
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			out = append(out, f[1])
		}
	}
	return out
}
