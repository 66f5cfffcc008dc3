package machine

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// A child outlives the threads that asked for it.
func TestChildOutlivesThreads(t *testing.T) {
	for range 20 {
		cmd := exec.Command("sleep", "60")
		var asked sync.WaitGroup
		asked.Go(func() {
			runtime.LockOSThread() // and never unlock it: the thread ends with the goroutine
			if err := StartChild(cmd); err != nil {
				t.Error(err)
			}
		})
		asked.Wait()
		if t.Failed() {
			return
		}
		var others sync.WaitGroup
		for range 8 { // threads that end later than the one above, as a sign that it has
			others.Go(func() { runtime.LockOSThread() })
		}
		others.Wait()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || err.Error() != "signal: terminated" {
			t.Error("it was killed before: ", err)
		}
	}
}

// A child with many busy threads stands still once it has been told to.
func TestStoppedChild(t *testing.T) {
	const spin = "MINIK8S_TEST_SPIN"
	if os.Getenv(spin) != "" {
		runtime.GOMAXPROCS(16)
		for range 16 {
			go func() {
				for turn := 0; ; turn++ {
					runtime.KeepAlive(turn)
				}
			}()
		}
		fmt.Println("spinning")
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestStoppedChild$")
	cmd.Env = append(os.Environ(), spin+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := StartChild(cmd); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()         //nolint:errcheck // it is killed
	defer cmd.Process.Kill() //nolint:errcheck // it may have ended
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := SignalChild(cmd.Process, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", cmd.Process.Pid))
		if err != nil || len(threads) == 0 {
			t.Fatal("no threads: ", err)
		}
		for _, file := range threads {
			stat, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, after, _ := bytes.Cut(stat, []byte(") ")); len(after) == 0 || after[0] != 'T' {
				t.Fatalf("a thread that is not stopped: %s", stat)
			}
		}
		if err := SignalChild(cmd.Process, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
}
