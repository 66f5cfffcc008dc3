package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"minik8s/internal/machine"
)

// TestMain gives the test's web server a network of its own.
func TestMain(m *testing.M) { machine.Run(m.Run) }

// The web server of the demo uses the CPU time that requests ask for, by the kernel's account, and says how much it was.
func TestWork(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("a network of its own needs root")
	}
	sources, err := filepath.Glob("../../../testdata/images/hello/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	for _, f := range sources {
		if _, err := os.Stat(f); err != nil { // the go command does a test again when what it looked at has changed
			t.Fatal(err)
		}
	}
	hello := filepath.Join(t.TempDir(), "hello")
	if out, err := exec.Command("go", "build", "-o", hello, "minik8s/testdata/images/hello").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := exec.Command(hello, "-port", "80")
	if err := machine.StartChild(server); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill() }) //nolint:errcheck // most often it has ended
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if status, _ := fetch(ctx, "/healthz"); status == http.StatusOK {
			break
		} else if ctx.Err() != nil {
			t.Fatal("it does not answer")
		}
		pause(ctx, 10*time.Millisecond) //nolint:errcheck // asked above
	}
	for range 10 {
		if status, body := fetch(ctx, "/?work=20ms"); status != http.StatusOK || body == "" {
			t.Fatal(status, body)
		}
	}
	for path, want := range map[string]string{
		"/?work=-1s": `work="-1s": expected a duration from 0s to 1s`, "/?work=2s": "expected", "/?work=much": "expected",
	} {
		if status, body := fetch(ctx, path); status != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Error(path, status, body)
		}
	}
	if _, page := fetch(ctx, "/metrics"); !strings.Contains(page, "\nhttp_requests_total 10\n") || !strings.Contains(page, "\nhello_load_cores 0\n") {
		t.Error(page)
	}
	for _, step := range [][2]string{{"/higher", "10%"}, {"/higher", "20%"}, {"/lower", "10%"}, {"/lower", "0%"}, {"/lower", "0%"}} {
		if _, body := fetch(ctx, step[0]); body != step[1]+"\n" {
			t.Error(step, body)
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Fatal(err)
	}
	if used := server.ProcessState.UserTime() + server.ProcessState.SystemTime(); used < 200*time.Millisecond {
		t.Errorf("ten times 20ms of work took %s of CPU time", used)
	}
}

func fetch(ctx context.Context, path string) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}
