package hostdns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"minik8s/internal/logind/logindtest"
)

// resolve1 plays systemd-resolved: it says what it was told.
type resolve1 struct {
	told chan string
	ends chan func() // if there is one, it has what ends it
}

func (r resolve1) say(format string, args ...any) *dbus.Error {
	if r.ends != nil {
		(<-r.ends)()
	}
	r.told <- fmt.Sprintf(format, args...)
	return nil
}

func (r resolve1) SetLinkLLMNR(link int32, mode string) *dbus.Error {
	return r.say("%d llmnr %s", link, mode)
}
func (r resolve1) SetLinkMulticastDNS(link int32, mode string) *dbus.Error {
	return r.say("%d mdns %s", link, mode)
}
func (r resolve1) SetLinkDNSSEC(link int32, mode string) *dbus.Error {
	return r.say("%d dnssec %s", link, mode)
}
func (r resolve1) SetLinkDNSOverTLS(link int32, mode string) *dbus.Error {
	return r.say("%d tls %s", link, mode)
}
func (r resolve1) SetLinkDNS(link int32, servers []linkServer) *dbus.Error {
	return r.say("%d dns %v", link, servers)
}
func (r resolve1) SetLinkDomains(link int32, domains []linkDomain) *dbus.Error {
	return r.say("%d domains %v", link, domains)
}
func (r resolve1) SetLinkDefaultRoute(link int32, on bool) *dbus.Error {
	return r.say("%d default %t", link, on)
}

// run has it on the bus until end is called.
func (r resolve1) run(t *testing.T) (end func()) {
	t.Helper()
	bus, err := dbus.ConnectSystemBus()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.Export(r, object, manager); err != nil {
		t.Fatal(err)
	}
	if reply, err := bus.RequestName(service, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(reply, err)
	}
	return func() { bus.Close() } //nolint:errcheck // a test
}

func (r resolve1) hears(t *testing.T) {
	t.Helper()
	var got []string
	for range 7 {
		select {
		case x := <-r.told:
			got = append(got, x)
		case <-time.After(10 * time.Second):
			t.Fatalf("it was told only %q", got)
		}
	}
	want := "7 llmnr no, 7 mdns no, 7 dnssec no, 7 tls no, 7 dns [{2 [10 96 0 10]}], 7 domains [{cluster.local true}], 7 default true"
	if strings.Join(got, ", ") != want {
		t.Errorf("it was told %q", got)
	}
}

// It is told by a real bus, and again when it was started again; and where nobody asks it, it is not.
func TestResolved(t *testing.T) {
	l, err := logindtest.Start(t.TempDir(), time.Second)
	if errors.Is(err, logindtest.ErrNoBus) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", l.Address)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	f := File{Path: filepath.Join(t.TempDir(), "resolv.conf"), Owner: "a"}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(f.Path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("nameserver 127.0.0.53\noptions edns0\n")
	if _, err := f.Resolved(ctx); err == nil || errors.Is(err, ErrNoResolved) {
		t.Fatalf("it is asked and does not run: %v", err)
	}
	r := resolve1{told: make(chan string, 100)}
	end := r.run(t)
	write("# This is /run/systemd/resolve/resolv.conf managed by man:systemd-resolved(8).\nnameserver 192.0.2.1\n")
	if _, err := f.Resolved(ctx); !errors.Is(err, ErrNoResolved) {
		t.Fatalf("it is not asked: %v", err)
	}
	write("nameserver 127.0.0.53\n")
	if err := f.Use(server); err != nil { // as an earlier version did
		t.Fatal(err)
	}
	c, err := f.Resolved(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	kept := make(chan error, 1)
	go func() { kept <- c.Keep(ctx, 7, server, "cluster.local") }()
	r.hears(t)
	end()
	dying := resolve1{told: make(chan string, 100), ends: make(chan func(), 1)} // before it has answered
	dying.ends <- dying.run(t)
	select {
	case <-dying.told:
	case <-time.After(10 * time.Second):
		t.Fatal("it was not told again")
	}
	end = r.run(t)
	defer end()
	r.hears(t)
	stop()
	if err := <-kept; err != nil {
		t.Error(err)
	}
}

// What resolved asks, without what is ours.
func TestUplinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("# made by it\nnameserver 10.96.0.10\nnameserver 192.0.2.1\nsearch .\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := uplinksOf(path, []netip.Addr{server}); err != nil || string(got) != "# made by it\nnameserver 192.0.2.1\nsearch .\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got := ownLoopback(); len(got) == 0 || !got[0].IsLoopback() {
		t.Errorf("lo has %v", got)
	}
}
