package containerd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"minik8s/internal/kubelet/cri"
)

// output collects what a process writes, and lets a test wait for it.
type output struct {
	mu   sync.Mutex
	cond *sync.Cond
	buf  bytes.Buffer
}

func newOutput() *output {
	o := &output{}
	o.cond = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cond.Broadcast()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) await(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !strings.Contains(o.buf.String(), text) {
		o.cond.Wait()
	}
}

func (b *bench) exec(id string, cfg cri.ExecConfig) int32 {
	b.t.Helper()
	code, err := b.Exec(b.ctx, id, cfg)
	if err != nil {
		b.t.Fatalf("%v: %v", cfg.Command, err)
	}
	return code
}

func TestExecIsLikeTheContainerItself(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("web", "c", "sleep", "1000")
	uid, gid := int64(1000), int64(7)
	cfg.Security.RunAsUser, cfg.Security.RunAsGroup = &uid, &gid
	cfg.Security.DropCapabilities = []string{"ALL"}
	cfg.WorkingDir = "/tmp"
	cfg.Env = []cri.EnvVar{{Name: "A", Value: "b c"}}
	id := b.start(cfg)
	var out, errOut bytes.Buffer
	code := b.exec(id, cri.ExecConfig{Stdout: &out, Stderr: &errOut,
		Command: []string{"sh", "-c", "id -u; id -g; pwd; echo $A; hostname; grep CapBnd /proc/self/status; echo to err >&2; exit 42"}})
	want := "1000\n7\n/tmp\nb c\nweb\nCapBnd:\t0000000000000000\n"
	if code != 42 || out.String() != want || errOut.String() != "to err\n" {
		t.Errorf("%d, %q, %q; want 42, %q", code, out.String(), errOut.String(), want)
	}
	var start *cri.StartError
	if _, err := b.Exec(b.ctx, id, cri.ExecConfig{Command: []string{"nosuch"}}); !errors.As(err, &start) || start.ExitCode != 127 ||
		start.Message != `exec: "nosuch": executable file not found in $PATH` {
		t.Errorf("a command that is not there: %v", err)
	}
	if err := b.StopContainer(b.ctx, id, 0); err != nil {
		t.Fatal(err)
	}
	b.waitExit(id)
	if _, err := b.Exec(b.ctx, id, cri.ExecConfig{Command: []string{"true"}}); !errors.Is(err, cri.ErrNotRunning) {
		t.Errorf("in a container that has ended: %v", err)
	}
}

func TestExecPassesLargeStreams(t *testing.T) {
	b := newBench(t)
	id := b.up("web", "sleep", "1000")
	in := bytes.Repeat([]byte("0123456789abcdef"), 10<<16) // 10 MiB
	var wg sync.WaitGroup
	for range 3 { // at once
		wg.Go(func() {
			sum := sha256.New()
			code, err := b.Exec(b.ctx, id, cri.ExecConfig{Command: []string{"cat"}, Stdin: bytes.NewReader(in), Stdout: sum})
			if err != nil || code != 0 || [32]byte(sum.Sum(nil)) != sha256.Sum256(in) {
				t.Errorf("10 MiB through cat: %d, %v, the same: %v", code, err, [32]byte(sum.Sum(nil)) == sha256.Sum256(in))
			}
		})
	}
	wg.Wait()
	var out bytes.Buffer
	if code := b.exec(id, cri.ExecConfig{Command: []string{"cat"}, Stdin: strings.NewReader(""), Stdout: &out}); code != 0 || out.Len() > 0 {
		t.Errorf("cat of nothing: %d, %q", code, out.String())
	}
	// One that does not read its input.
	if code := b.exec(id, cri.ExecConfig{Command: []string{"true"}, Stdin: bytes.NewReader(in)}); code != 0 {
		t.Errorf("true: %d", code)
	}
	// One with a background process that holds its output open.
	out.Reset()
	if code := b.exec(id, cri.ExecConfig{Command: []string{"sh", "-c", "sleep 1000 & echo hi"}, Stdout: &out}); code != 0 || out.String() != "hi\n" {
		t.Errorf("with a background job: %d, %q", code, out.String())
	}
}

func TestExecOnATerminal(t *testing.T) {
	b := newBench(t)
	id := b.up("web", "sleep", "1000")
	in, keys := io.Pipe()
	defer keys.Close()
	sizes := make(chan cri.TermSize)
	out := newOutput()
	done := make(chan int32)
	go func() {
		code, err := b.Exec(b.ctx, id, cri.ExecConfig{TTY: true, Stdin: in, Stdout: out, Resize: sizes,
			Command: []string{"sh", "-c", "echo $TERM; trap 'stty size; exit 5' WINCH; stty size; while :; do read x; echo got $x; done"}})
		if err != nil {
			t.Error(err)
		}
		done <- code
	}()
	out.await("xterm")
	if _, err := io.WriteString(keys, "hello\n"); err != nil {
		t.Fatal(err)
	}
	out.await("got hello")
	sizes <- cri.TermSize{Width: 100, Height: 31}
	// A shell that waits in read looks at signals after it.
	go func() {
		for {
			if _, err := io.WriteString(keys, "more\n"); err != nil {
				return
			}
			out.await("got more")
		}
	}()
	code := <-done
	if code != 5 || !strings.Contains(out.String(), "31 100") {
		t.Errorf("%d, %q", code, out.String())
	}
}

func TestTheEndOfExecLeavesNothing(t *testing.T) {
	b := newBench(t)
	id := b.up("web", "sleep", "1000")
	pid := b.containers.Get(id).Report().Pid
	// Only living processes: the container's first process, a sleep, does not reap zombies.
	procs := func() string {
		var out bytes.Buffer
		b.exec(id, cri.ExecConfig{Command: []string{"sh", "-c", "ps -o stat,comm | grep -v ^Z | grep -c 'tai[l]'"}, Stdout: &out})
		return strings.TrimSpace(out.String())
	}
	ctx, cancel := context.WithCancel(b.ctx)
	out := newOutput()
	done := make(chan error)
	in, input := io.Pipe()
	go func() {
		// A yes that ran from the start could keep the others from starting, on a busy machine: a pod without
		// requests gets little of it.
		_, err := b.Exec(ctx, id, cri.ExecConfig{Stdin: in, Stdout: out,
			Command: []string{"sh", "-c", "tail -f /dev/null & tail -f /dev/null & echo up; read go; yes"}})
		done <- err
	}()
	out.await("up")
	for deadline := time.Now().Add(time.Minute); ; { // the shell writes before its children have called exec
		n := procs()
		if n == "2" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s of tail run, want 2", n)
		}
	}
	if _, err := io.WriteString(input, "go\n"); err != nil {
		t.Fatal(err)
	}
	out.await("y\ny\n")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cut off: %v", err)
	}
	if n := procs(); n != "0" {
		t.Errorf("%s of tail run after it was cut off", n)
	}
	// And the next start ends what the daemon's end has cut off.
	out = newOutput()
	left := b.Runtime
	go func() {
		left.Exec(b.ctx, id, cri.ExecConfig{Stdout: out, Command: []string{"sh", "-c", "tail -f /dev/null & echo up; exec tail -f /dev/null"}})
		done <- nil
	}()
	out.await("up")
	b.restart()
	<-done
	if n := procs(); n != "0" {
		t.Errorf("%s of tail run after a restart", n)
	}
	if now := b.containers.Get(id).Report().Pid; now != pid {
		t.Errorf("the container itself has pid %d, had %d", now, pid)
	}
	if err := b.StopContainer(b.ctx, id, 0); err != nil {
		t.Fatal(err)
	}
	if dirs, _ := filepath.Glob(filepath.Join(b.containerDir(id), "exec-*")); len(dirs) > 0 {
		t.Errorf("left behind: %v", dirs)
	}
}
