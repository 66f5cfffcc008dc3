package login_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"minik8s/internal/slurm/login"
	"minik8s/internal/slurm/slurmtest"
)

func TestParseHostKey(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICbI6fpGkR05bjAUox49dONvMEPomsrzaqWPYWNLCLMh"
	for entry, ok := range map[string]bool{
		key: true, key + " a comment": true, "login,10.0.0.1 " + key: true, " " + key + "\n": true,
		"SHA256:oozLUiRrurJx158t7zxY8gS5f1aZU9jqgcFz3lxG/3o": true, "SHA256:oozLUiRrurJx158t7zxY8gS5f1aZU9jqgcFz3lxG/3o=": true,
		"SHA256:short": false, "": false, "ssh-ed25519": false, "ssh-ed25519 rubbish": false, "MD5:aa:bb": false,
	} {
		if err := login.ParseHostKey(entry); (err == nil) != ok {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

// counting counts the connections that are opened.
type counting struct {
	login.Dialer
	n atomic.Int32
}

func (c *counting) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c.n.Add(1)
	return c.Dialer.DialContext(ctx, network, addr)
}

// TestNode logs in at a real sshd.
func TestNode(t *testing.T) {
	s := slurmtest.Start(t, slurmtest.Options{})
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	good := login.Target{Addr: s.Addr, User: s.User, Key: s.Key, HostKeys: []string{s.HostKey}}
	ctx := context.Background()
	node := func(change func(*login.Target)) (*login.Node, *counting) {
		target := good
		change(&target)
		d := &counting{Dialer: s}
		n := login.New(target, d, quiet)
		t.Cleanup(n.Close)
		return n, d
	}
	says := func(n *login.Node, script, want string) {
		t.Helper()
		if out, err := n.Run(ctx, script); err != nil || string(out) != want {
			t.Errorf("%q: %q %v, want %q", script, out, err, want)
		}
	}

	n, d := node(func(*login.Target) {})
	says(n, "id -un", s.User+"\n")
	var ended *login.ExitError
	if _, err := n.Run(ctx, "echo no >&2; exit 7"); !errors.As(err, &ended) || ended.Code != 7 || ended.Stderr != "no" {
		t.Errorf("%v", err)
	}
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() { says(n, "echo x", "x\n") })
	}
	all.Wait()
	limit, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	if _, err := n.Run(limit, "sleep 60"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	cancel()
	if d.n.Load() != 1 {
		t.Errorf("%d connections", d.n.Load())
	}
	s.Cut()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if out, err := n.Run(ctx, "echo again"); err == nil && string(out) == "again\n" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("it does not connect again: %v", err)
		}
	}

	n, _ = node(func(t *login.Target) { t.Key, t.Password = nil, s.Password })
	says(n, "echo password", "password\n")

	var refused *login.RefusedError
	n, d = node(func(t *login.Target) { t.Key, t.Password = nil, "s3cret" })
	for range 3 {
		if _, err := n.Run(ctx, "true"); !errors.As(err, &refused) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	}
	if d.n.Load() != 1 {
		t.Errorf("a wrong password was tried %d times at once", d.n.Load())
	}

	var key *login.HostKeyError
	n, _ = node(func(t *login.Target) { t.HostKeys = nil })
	if err := n.Connect(ctx); !errors.As(err, &key) || key.Known || key.Key != s.HostKey {
		t.Errorf("%v", err)
	}
	fingerprint := key.Fingerprint
	n, _ = node(func(t *login.Target) { t.HostKeys = []string{fingerprint} })
	says(n, "echo fingerprint", "fingerprint\n")
	n, _ = node(func(t *login.Target) { t.HostKeys = []string{"SHA256:" + strings.Repeat("A", 43)} })
	if err := n.Connect(ctx); !errors.As(err, &key) || !key.Known {
		t.Errorf("%v", err)
	}
	n, _ = node(func(t *login.Target) {
		jump := good
		t.Jump = &jump
	})
	says(n, "echo jumped", "jumped\n")
	n, _ = node(func(t *login.Target) {
		jump := good
		jump.HostKeys = nil
		t.Jump = &jump
	})
	if err := n.Connect(ctx); !errors.As(err, &key) || key.Known {
		t.Errorf("through a jump host that nobody knows: %v", err)
	}
	var credential *login.CredentialError
	for _, bad := range []func(*login.Target){func(t *login.Target) { t.Key = nil }, func(t *login.Target) { t.Key = []byte("no key") }} {
		n, d = node(bad)
		if err := n.Connect(ctx); !errors.As(err, &credential) || d.n.Load() != 0 {
			t.Errorf("%v, %d connections", err, d.n.Load())
		}
	}
}
