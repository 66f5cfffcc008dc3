package hostdns

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var server = netip.MustParseAddr("10.96.0.10")

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// servers are those of a file, in order.
func servers(text string) (out []string) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "nameserver" {
			out = append(out, f[1])
		}
	}
	return out
}

// However often ours is put in, the file is in the end what it was.
func TestUseAndRestore(t *testing.T) {
	for name, text := range map[string]string{"usual": "search example\nnameserver 192.0.2.1\nnameserver 192.0.2.2\noptions ndots:1\n", "empty": "", "no newline": "nameserver 192.0.2.1"} {
		t.Run(name, func(t *testing.T) {
			f := File{Path: filepath.Join(t.TempDir(), "resolv.conf"), Owner: "a"}
			other := File{Path: f.Path, Owner: "b"}
			if err := os.WriteFile(f.Path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{"10.96.0.10", "10.96.0.10", "10.97.0.10"} {
				if err := f.Use(netip.MustParseAddr(at)); err != nil {
					t.Fatal(err)
				}
				if got := servers(read(t, f.Path)); got[0] != at || len(got) != 1+len(servers(text)) {
					t.Errorf("the servers are %q", got)
				}
				if got := string(Rest([]byte(read(t, f.Path)))); got != text {
					t.Errorf("the rest is %q", got)
				}
			}
			if err := other.Use(server); err != nil {
				t.Fatal(err)
			}
			if got := string(Rest([]byte(read(t, f.Path)))); got != text {
				t.Errorf("the rest of two is %q", got)
			}
			for _, f := range []File{f, f, other} {
				if err := f.Restore(); err != nil {
					t.Fatal(err)
				}
			}
			if got := read(t, f.Path); got != text {
				t.Errorf("it is %q, and was %q", got, text)
			}
		})
	}
}

func TestLink(t *testing.T) {
	dir := t.TempDir()
	f := File{Path: filepath.Join(dir, "resolv.conf"), Owner: "a"}
	if err := os.WriteFile(filepath.Join(dir, "stub"), []byte("nameserver 127.0.0.53\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("stub", f.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("stub", f.Path+".minik8s"); err != nil { // a kill has left it
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Use(server); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, f.Path); len(servers(got)) != 2 {
		t.Errorf("%q", got)
	}
	if got := read(t, filepath.Join(dir, "stub")); got != "nameserver 127.0.0.53\n" {
		t.Errorf("the link's target was written to: %q", got)
	}
	for range 2 {
		if err := f.Restore(); err != nil {
			t.Fatal(err)
		}
		if to, err := os.Readlink(f.Path); err != nil || to != "stub" {
			t.Errorf("it is not the link that it was: %q, %v", to, err)
		}
	}
}

// In containers the file is a mount, which cannot be replaced.
func TestMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a mount needs root")
	}
	dir := t.TempDir()
	f := File{Path: filepath.Join(dir, "resolv.conf"), Owner: "a"}
	for _, name := range []string{"resolv.conf", "real"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("nameserver 192.0.2.1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(filepath.Join(dir, "real"), f.Path, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(f.Path, unix.MNT_DETACH) //nolint:errcheck // it was mounted
	if err := f.Use(server); err != nil {
		t.Fatal(err)
	}
	if got := servers(read(t, filepath.Join(dir, "real"))); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if err := f.Restore(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(dir, "real")); got != "nameserver 192.0.2.1\n" {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(f.Path + ".minik8s"); !os.IsNotExist(err) {
		t.Error("a file is left behind")
	}
}

// What others write while it is kept stays, and ours comes back before it.
func TestKeep(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "resolv.conf"), Owner: "a"}
	if err := os.WriteFile(f.Path, []byte("nameserver 192.0.2.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Keep(ctx, server, slog.New(slog.DiscardHandler)) }()
	for len(servers(read(t, f.Path))) != 2 {
		time.Sleep(time.Millisecond)
	}
	const dhcp = "# from DHCP\nnameserver 192.0.2.9\n"
	for _, write := range []func() error{
		func() error { return os.WriteFile(f.Path, []byte(dhcp), 0o644) },
		func() error {
			if err := os.WriteFile(f.Path+".new", []byte(dhcp), 0o644); err != nil {
				return err
			}
			return os.Rename(f.Path+".new", f.Path)
		},
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		for got := servers(read(t, f.Path)); len(got) != 2 || got[0] != server.String() || got[1] != "192.0.2.9"; got = servers(read(t, f.Path)) {
			time.Sleep(time.Millisecond)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := read(t, f.Path); got != dhcp {
		t.Errorf("it is %q", got)
	}
}
