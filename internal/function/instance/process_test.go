package instance

import (
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gone waits for the end of a process.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Error(err)
		return
	}
	for began := time.Now(); syscall.Kill(n, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Errorf("process %d is left", n)
			return
		}
	}
}

// What a call leaves behind ends with it, however it has left: it delays neither the answer nor another call.
func TestCallThatForks(t *testing.T) {
	address, _ := served(t, `
import os, subprocess, sys, time
def daemon():
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
        os.write(write, b"%d" % pid)
        os._exit(0)
    return os.read(read, 20).decode()
def run(arg):
    if arg == "fork":
        return str(os.fork() or time.sleep(600))
    if arg == "both return":
        return str(os.fork())
    if arg == "session":
        return str(subprocess.Popen(["sleep", "600"], start_new_session=True).pid)
    if arg == "daemon":
        return daemon()
    return "fine"
`, "MINIK8S_VERSION=v1")
	for _, arg := range []string{"fork", "both return", "session", "daemon"} {
		began := time.Now()
		status, outcome, pid := says(t, address, post(arg, "X-Minik8s-Timeout: 60"))
		if status != 200 || outcome != "ok" || time.Since(began) > 20*time.Second {
			t.Errorf("%s: %d %s %q after %s", arg, status, outcome, pid, time.Since(began))
			continue
		}
		gone(t, pid)
	}
	if status, _, text := says(t, address, post("")); status != 200 || text != "fine" {
		t.Errorf("then: %d %q", status, text)
	}
}

// The same of calls that end otherwise than by an answer.
func TestCallThatForksAndFails(t *testing.T) {
	for arg, want := range map[string]int{"dies": 500, "late": 504} {
		address, log := served(t, `
import os, sys, time
def run(arg):
    if os.fork() == 0:
        os.setsid()
        sys.stdout.write("left %d\n" % os.getpid())
        sys.stdout.flush()
        time.sleep(600)
    time.sleep(0.2)
    if arg == "dies":
        os._exit(3)
    time.sleep(600)
`, "MINIK8S_VERSION=v1")
		if status, outcome, text := says(t, address, post(arg, "X-Minik8s-Timeout: 1")); status != want || outcome != "function" {
			t.Errorf("%s: %d %s %q", arg, status, outcome, text)
		}
		_, pid, found := strings.Cut(log(), "left ")
		if pid, _, _ = strings.Cut(pid, "\n"); !found {
			t.Error(arg, log())
			continue
		}
		gone(t, pid)
	}
}

// A call in a process of its own has no connection but its own files: neither another caller's nor the port.
func TestCallHasNoConnections(t *testing.T) {
	address, _ := served(t, `
import os
def run(arg):
    names = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink("/proc/self/fd/" + fd))
        except OSError:
            pass
    return " ".join(names)
`, "MINIK8S_VERSION=v1")
	other, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // nothing is sent
	if status, _, text := says(t, address, post("")); status != 200 || strings.Contains(text, "socket:") {
		t.Errorf("%d: a call has %s", status, text)
	}
}

// A function's file is a module: what Python does with modules works in it.
func TestFunctionIsAModule(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		address, _ := served(t, `
from __future__ import annotations
import pickle, typing
from dataclasses import dataclass

@dataclass
class Point:
    x: int
    y: typing.ClassVar[int] = 2

def main(params):
    import main as again
    p = pickle.loads(pickle.dumps(Point(params["x"])))
    return [p.x, isinstance(p, again.Point), typing.get_type_hints(Point)["x"] is int]
`, "MINIK8S_VERSION="+version)
		if status, _, text := says(t, address, post(`{"x": 1}`)); status != 200 || text != "[1, true, true]" {
			t.Errorf("%s: %d %s", version, status, text)
		}
	}
}

// A call over its time that cannot be stopped takes no other call with it: the instance ends when these have ended.
func TestLateAmongOthers(t *testing.T) {
	address, log := served(t, "import time\ndef run(arg):\n    time.sleep(float(arg))\n    return 'slept'\n", "MINIK8S_VERSION=v2")
	type said struct {
		status int
		text   string
	}
	other := make(chan said, 1)
	go func() {
		status, _, text := says(t, address, post("1.5", "X-Minik8s-Timeout: 60"))
		other <- said{status, text}
	}()
	if status, outcome, text := says(t, address, post("600", "X-Minik8s-Timeout: 0.3", "X-Minik8s-Call: long")); status != 504 || outcome != "function" {
		t.Errorf("%d %s %q", status, outcome, text)
	}
	if o := <-other; o.status != 200 || o.text != "slept" {
		t.Errorf("the other call: %+v", o)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		c.Close() //nolint:errcheck // nothing was sent
		if time.Since(began) > 10*time.Second {
			t.Fatal("the instance goes on with a call that cannot be stopped", log())
		}
	}
	if !strings.Contains(log(), "call long has run for 0.3 s") {
		t.Error(log())
	}
}
