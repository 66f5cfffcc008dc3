package login_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

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
	// A host that was set up anew may have keys of other types alone.
	if strings.HasPrefix(s.HostKey, "ecdsa") {
		t.Fatal("the host has a key of that type")
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	former, err := ssh.NewPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	n, _ = node(func(t *login.Target) {
		t.HostKeys = []string{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(former)))}
	})
	if err := n.Connect(ctx); !errors.As(err, &key) || !key.Known || key.Key != "" || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("a key of another type: %v", err)
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

// TestRefusals has a wrong password: it is tried twice, once each time, and then no more until a person says so.
func TestRefusals(t *testing.T) {
	s := slurmtest.Start(t, slurmtest.Options{})
	d := &counting{Dialer: s}
	n := login.New(login.Target{Addr: s.Addr, User: s.User, Password: "s3cret", HostKeys: []string{s.HostKey}}, d, slog.New(slog.NewTextHandler(io.Discard, nil)))
	t.Cleanup(n.Close)
	n.Hasten(time.Minute, time.Millisecond, time.Minute)
	var refused *login.RefusedError
	for end := time.Now().Add(20 * time.Second); !errors.As(n.Connect(t.Context()), &refused) || !refused.Final; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it goes on trying")
		}
	}
	if text := refused.Error(); !strings.Contains(text, "ctl gpu login") || strings.Contains(text, "s3cret") {
		t.Error(text)
	}
	for range 20 {
		n.Connect(t.Context()) //nolint:errcheck // it is counted
		time.Sleep(2 * time.Millisecond)
	}
	if got := d.n.Load(); got != 2 {
		t.Errorf("%d attempts", got)
	}
	if err := n.Login(t.Context(), nil); !errors.As(err, &refused) || d.n.Load() != 3 {
		t.Errorf("%v after %d attempts", err, d.n.Load())
	}
}

// TestNoise has login scripts that print.
func TestNoise(t *testing.T) {
	s := slurmtest.Start(t, slurmtest.Options{})
	n := login.New(login.Target{Addr: s.Addr, User: s.User, Key: s.Key, HostKeys: []string{s.HostKey}}, s, slog.New(slog.NewTextHandler(io.Discard, nil)))
	t.Cleanup(n.Close)
	if out := s.Do("echo 'echo Welcome; echo mind the queue' >.bashrc"); out != "" {
		t.Fatal(out)
	}
	if out, err := n.Run(t.Context(), "echo one; echo two"); err != nil || string(out) != "one\ntwo\n" {
		t.Errorf("%q %v", out, err)
	}
	var ended *login.ExitError
	if out, err := n.Run(t.Context(), "echo one; exit 3"); !errors.As(err, &ended) || ended.Code != 3 || string(out) != "one\n" {
		t.Errorf("%q %v", out, err)
	}
	s.Do("echo 'echo no shell for you; exit 0' >.bashrc")
	for _, script := range []string{"echo one", "echo one #" + strings.Repeat("x", 8<<20)} { // the shell may end while it is still being told what to do
		if out, err := n.Run(t.Context(), script); err == nil || !strings.Contains(err.Error(), "no shell for you") {
			t.Errorf("%q %v", out, err)
		}
	}
}

// TestHanging has a login node whose disks hang: what waits for them ends, and works again when they are back.
func TestHanging(t *testing.T) {
	s := slurmtest.Start(t, slurmtest.Options{})
	n := login.New(login.Target{Addr: s.Addr, User: s.User, Key: s.Key, HostKeys: []string{s.HostKey}}, s, slog.New(slog.NewTextHandler(io.Discard, nil)))
	t.Cleanup(n.Close)
	n.Hasten(200*time.Millisecond, time.Minute, 200*time.Millisecond)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := n.Run(t.Context(), "sleep 5"); err == nil || !strings.Contains(err.Error(), "do its disks hang?") {
				t.Errorf("a command: %v", err)
			}
		})
	}
	all.Wait()
	files, err := n.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.ReadDir(s.Home); err != nil {
		t.Fatal(err)
	}
	if out := s.Root("pkill -STOP -f [i]nternal-sftp"); out != "" {
		t.Fatal(out)
	}
	if _, err := files.ReadDir(s.Home); err == nil {
		t.Error("a server that is stopped has answered")
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if files, err = n.Files(t.Context()); err == nil {
			if _, err = files.ReadDir(s.Home); err == nil {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	s.Root("pkill -CONT -f [i]nternal-sftp")
}
