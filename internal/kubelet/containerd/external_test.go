package containerd

import (
	"path/filepath"
	"testing"
)

// TestARunningContainerd uses a containerd by its socket; it happens to be in this process too.
func TestARunningContainerd(t *testing.T) {
	other := newBench(t)
	// It finds the shim and runc the way an installed one does.
	t.Setenv("PATH", filepath.Join(other.cfg.DataDir, "bin")+":/usr/sbin:/usr/bin:/sbin:/bin")
	b := &bench{t: t, ctx: t.Context(), cfg: other.cfg}
	b.cfg.DataDir = t.TempDir()
	b.cfg.Socket = other.containerd.Socket
	b.cfg.CgroupRoot += "-external"
	t.Cleanup(b.destroy)
	b.open()
	id := b.up("web", "sh", "-c", "echo hello; exit 4")
	if c := b.waitExit(id); c.ExitCode != 4 || b.log(id) != "hello\n" {
		t.Errorf("%+v, %q", c, b.log(id))
	}
	id = b.up("other", "sleep", "1000")
	b.restart()
	if err := b.StopContainer(b.ctx, id, 0); err != nil {
		t.Fatal(err)
	}
	if c := b.waitExit(id); c.ExitCode != 137 {
		t.Errorf("%+v", c)
	}
}
