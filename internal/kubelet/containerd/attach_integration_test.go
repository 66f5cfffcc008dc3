package containerd

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"minik8s/internal/kubelet/cri"
)

func TestAttachJoinsTheContainersOwnStreams(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("web", "c", "sh", "-c", "while read x; do echo got $x; done; echo end >&2; exit 3")
	cfg.Stdin, cfg.StdinOnce = true, true
	id := b.start(cfg)
	watched := newOutput()
	watching := make(chan error)
	go func() { watching <- b.Attach(b.ctx, id, cri.AttachConfig{Stdout: watched, Stderr: watched}) }()
	in, keys := io.Pipe()
	out, errOut := newOutput(), newOutput()
	done := make(chan error)
	go func() { done <- b.Attach(b.ctx, id, cri.AttachConfig{Stdin: in, Stdout: out, Stderr: errOut}) }()
	for b.containers.Get(id).Attached() < 2 { // earlier output is not passed to them
		runtime.Gosched()
	}
	go func() {
		io.WriteString(keys, "hello\n")
		keys.Close()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := <-watching; err != nil {
		t.Error(err)
	}
	// The order of the two streams is undefined.
	if both := watched.String(); out.String() != "got hello\n" || errOut.String() != "end\n" || len(both) != len("got hello\nend\n") {
		t.Errorf("stdout: %q, stderr: %q, both: %q", out.String(), errOut.String(), both)
	}
	if c := b.waitExit(id); c.ExitCode != 3 {
		t.Errorf("exit code %d", c.ExitCode)
	}
	if log := b.log(id); !strings.Contains(log, "got hello\n") || !strings.Contains(log, "end\n") {
		t.Errorf("the log: %q", log)
	}
}

func TestAttachLosesNothing(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("web", "c", "cat")
	cfg.Stdin, cfg.StdinOnce = true, true
	id := b.start(cfg)
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 4<<16) // 4 MiB
	var got bytes.Buffer
	if err := b.Attach(b.ctx, id, cri.AttachConfig{Stdin: bytes.NewReader(sent), Stdout: &got}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), sent) {
		t.Errorf("%d of %d bytes came back", got.Len(), len(sent))
	}
}

func TestAttachToATerminal(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("web", "c", "sh")
	cfg.Stdin, cfg.TTY = true, true
	id := b.start(cfg)
	for _, word := range []string{"one", "two"} { // its input outlives the first who attaches
		in, keys := io.Pipe()
		out := newOutput()
		done := make(chan error)
		sizes := make(chan cri.TermSize)
		go func() { done <- b.Attach(b.ctx, id, cri.AttachConfig{Stdin: in, Stdout: out, Resize: sizes}) }()
		sizes <- cri.TermSize{Width: 90, Height: 20}
		sizes <- cri.TermSize{Width: 91, Height: 21} // taken when the one before is set
		if _, err := io.WriteString(keys, "echo $((1+1))"+word+"; stty size\n"); err != nil {
			t.Fatal(err)
		}
		out.await("2" + word)
		out.await("9")
		if word == "two" {
			if _, err := io.WriteString(keys, "exit 7\n"); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		keys.Close()
	}
	if c := b.waitExit(id); c.ExitCode != 7 {
		t.Errorf("exit code %d", c.ExitCode)
	}
}

func TestPortForwardReachesThePodsLoopback(t *testing.T) {
	b := newBench(t)
	b.up("web", "sh", "-c", "mkdir -p /www; echo hi > /www/f; exec httpd -f -p 127.0.0.1:8080 -h /www")
	var conn io.ReadWriteCloser
	var err error
	for { // until it listens
		if conn, err = b.PortForward(b.ctx, "uid-web", 8080); err == nil {
			break
		}
		if !strings.Contains(err.Error(), "connection refused") {
			t.Fatal(err)
		}
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /f HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, ok := conn.(interface{ CloseWrite() error }); !ok {
		t.Error("it cannot be closed for one direction")
	}
	if data, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(data), "\nhi\n") {
		t.Errorf("%q, %v", data, err)
	}
	host := b.sandboxConfig("host")
	host.HostNetwork = true
	if _, err := b.EnsureSandbox(b.ctx, host); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	own, err := b.PortForward(b.ctx, "uid-host", int32(l.Addr().(*net.TCPAddr).Port))
	if err != nil {
		t.Fatal(err)
	}
	own.Close()
	if _, err := b.PortForward(b.ctx, "uid-nobody", 1); err == nil {
		t.Error("a pod that is not there was reached")
	}
}
