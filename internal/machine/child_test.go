package machine

import (
	"os/exec"
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
