package hostfilter

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"minik8s/internal/machine"
	"minik8s/internal/nft"
)

// TestMain gives the tests a machine's network of their own.
func TestMain(m *testing.M) { machine.Run(m.Run) }

func TestFirewalld(t *testing.T) {
	f := nft.NewFake()
	n := New(f, "minik8s-pods-", "minik8s-pods-test", slog.New(slog.NewTextHandler(t.Output(), nil)))
	pass := Traffic{Pods: podRange, Links: "mkab12", Exit: "eth0"}
	var asked []string
	trusted := false
	n.firewalld = firewalld{func(name string, args ...string) (string, error) {
		asked = append(asked, args[1])
		if strings.HasPrefix(args[1], "--query") && !trusted {
			return "", errors.New("no")
		}
		trusted = strings.HasPrefix(args[1], "--add") || trusted && !strings.HasPrefix(args[1], "--remove")
		return "", nil
	}}
	f.Foreign = []nft.BaseChain{{Family: "inet", Table: "firewalld", Name: "filter_FORWARD", Hook: nft.Forward, Drops: true}}
	f.Refuse["firewalld"] = unix.EPERM
	for range 2 {
		if _, err := n.Open(pass); err != nil {
			t.Fatal(err)
		}
	}
	peers := Traffic{Pods: podRange, Peers: []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24")}, TunnelPort: 8472}
	need := fmt.Sprint(firewalldNeeds(podRange, peers.admitted()))
	if want := "[{--zone=trusted source=10.244.0.0/24} {--zone=trusted source=10.244.2.0/24} {--quiet port=8472/udp}]"; need != want {
		t.Errorf("got %s, want %s", need, want)
	}
	if got := n.Trouble().Stopped; len(got) != 0 || !trusted {
		t.Errorf("%q, trusted %v, asked %q", got, trusted, asked)
	}
	if err := errors.Join(n.Close(pass)...); err != nil || trusted {
		t.Errorf("%v, trusted %v", err, trusted)
	}
}

// The older iptables, by its own tool, where that is on the machine.
func TestLegacy(t *testing.T) {
	l := legacy{runTool, legacyInUse, "minik8s-pods-test"}
	want := Traffic{Pods: podRange, Ports: []uint16{6443}}.admitted()
	missing := legacy{func(string, ...string) (string, error) { return "", exec.ErrNotFound }, func() bool { return true }, l.tag}
	if _, err := missing.open(podRange, want); err == nil || !strings.Contains(err.Error(), "iptables-legacy") {
		t.Errorf("without the tool: %v", err)
	}
	if _, err := exec.LookPath(legacyTool); err != nil || os.Geteuid() != 0 {
		t.Skip("no iptables-legacy here")
	}
	if used := legacyInUse(); !used { // it stays, once it is there
		if done, err := l.open(podRange, want); done || err != nil || legacyInUse() {
			t.Fatalf("a table that nobody uses is brought into being: %v, %v", done, err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := runTool(legacyTool, args...)
		if err != nil {
			t.Skip("the kernel has no older iptables:", err)
		}
		return out
	}
	run("-P", "FORWARD", "DROP")
	t.Cleanup(func() { run("-P", "FORWARD", "ACCEPT"); run("-F") })
	run("-A", "INPUT", "-j", "DROP")
	for range 2 {
		if done, err := l.open(podRange, want); !done || err != nil {
			t.Fatal(done, err)
		}
	}
	saved := run("-S")
	if strings.Count(saved, "-A FORWARD") != 2 || strings.Count(saved, "-A INPUT") != 6 || strings.Count(saved, "-A OUTPUT") != 0 ||
		!strings.HasSuffix(strings.TrimSpace(saved[:strings.Index(saved, "-A FORWARD")]), "-A INPUT -j DROP") {
		t.Error(saved)
	}
	if err := l.close(podRange, want); err != nil {
		t.Error(err)
	}
	if saved := run("-S"); strings.Contains(saved, l.tag) {
		t.Error("left behind:", saved)
	}
}
