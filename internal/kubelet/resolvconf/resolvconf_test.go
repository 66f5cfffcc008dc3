package resolvconf

import (
	"os"
	"path/filepath"
	"testing"

	"minik8s/internal/hostdns"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	upstream := filepath.Join(dir, "upstream")
	if err := os.WriteFile(upstream, []byte("nameserver 192.0.2.53\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	at := func(path string) func() ([]byte, error) { return func() ([]byte, error) { return os.ReadFile(path) } }
	for name, c := range map[string]struct{ text, want string }{
		"systemd-resolved's stub": {"# made by it\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch example\n", "nameserver 192.0.2.53\n"},
		"with the cluster's DNS first": {"# minik8s-a: the cluster's DNS comes first. These lines go when the daemon ends.\nnameserver 10.96.0.10\n# minik8s-a: end\nnameserver 127.0.0.53\n",
			"nameserver 192.0.2.53\n"},
		"one that can be reached": {"nameserver 127.0.0.1\nnameserver 192.0.2.1\n", "nameserver 127.0.0.1\nnameserver 192.0.2.1\n"},
		"none":                    {"search example\n", "search example\n"},
	} {
		path := filepath.Join(dir, "resolv.conf")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := read(path, at(upstream)); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if got, err := read(path, at(filepath.Join(dir, "missing"))); err != nil || string(got) != string(hostdns.Rest([]byte(c.text))) {
			t.Errorf("%s, with nothing behind it: %q, %v", name, got, err)
		}
	}
	if got, err := read(filepath.Join(dir, "missing"), at(upstream)); err != nil || len(got) != 0 {
		t.Errorf("no file: %q, %v", got, err)
	}
}
