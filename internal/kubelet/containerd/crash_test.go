package containerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ctrd "github.com/containerd/containerd"
	"golang.org/x/sys/unix"
)

// crashDir names the data directory to the process that is to be killed.
const crashDir = "MINIK8S_TEST_CRASH"

// TestKilledAnywhere kills, with SIGKILL and at any moment, a process that makes and removes pods without end.
// Whatever it was doing, the next process must be able to start, to find what there is, to finish it and to remove it
// without a trace.
func TestKilledAnywhere(t *testing.T) {
	if dir := os.Getenv(crashDir); dir != "" {
		makeAndRemove(t, dir)
		return
	}
	b := newBench(t)
	b.killed = true
	seed := time.Now().UnixNano()
	rnd := rand.New(rand.NewSource(seed))
	for round := range 12 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b.Runtime = nil
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestKilledAnywhere$")
		cmd.Env = append(os.Environ(), crashDir+"="+b.cfg.DataDir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// It says when it begins.
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rnd.Intn(300)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() // ends by the signal
		b.open()
		pods, err := b.Pods(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		// Half of them are finished, the others removed.
		for i, p := range pods {
			name := p.UID[len("uid-"):]
			if (round+i)%2 == 0 {
				s, err := b.EnsureSandbox(b.ctx, b.sandboxConfig(name))
				if err != nil || !s.Whole {
					t.Fatalf("seed %d, round %d: finishing %s: %+v, %v", seed, round, name, s, err)
				}
				cfg := b.containerConfig(name, "after", "true")
				cfg.Attempt = round
				b.waitExit(b.start(cfg))
			}
			if err := b.removePod(b.ctx, p.UID); err != nil {
				t.Fatalf("seed %d, round %d: removing %s: %v", seed, round, name, err)
			}
		}
		b.sandboxes.Stop()
		b.sandboxes.Drop()
		b.leftovers()
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
}

// makeAndRemove works on several pods until it is killed.
func makeAndRemove(t *testing.T, dir string) {
	b := &bench{t: t, ctx: context.Background(), cfg: Config{
		DataDir: dir, NodeName: "node", CgroupRoot: "/" + filepath.Base(dir),
		Log: slog.New(slog.DiscardHandler),
	}}
	b.open()
	fmt.Print("+")
	for worker := range 3 {
		go func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("w%d-%d", worker, i)
				b.up(name, "sleep", "1000")
				if i%3 == 0 {
					continue
				}
				if err := b.removePod(b.ctx, "uid-"+name); err != nil {
					panic(err)
				}
			}
		}()
	}
	select {}
}

// Removing everything also ends what others have made by containerd's socket.
func TestUninstallEndsWhatOthersMade(t *testing.T) {
	b := newBench(t)
	c, task := b.startBare("other")
	if err := b.Uninstall(b.ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its process has ended", func() error { // and whoever adopted it has reaped it
		if err := unix.Kill(int(task.Pid()), 0); !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("signalling it: %v", err)
		}
		return nil
	})
	if err := c.Delete(b.ns(b.ctx), ctrd.WithSnapshotCleanup); err != nil {
		t.Error(err)
	}
}
