package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"minik8s/internal/kubelet/cri"
)

// The files are as Linux 6.1 writes them.
func TestReadV2(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"cpu.stat":            "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_periods 10\nnr_throttled 3\nthrottled_usec 7\n",
		"memory.current":      "5000\n",
		"memory.stat":         "anon 100\nfile 200\nkernel 7\nfile_mapped 50\ninactive_anon 9\ninactive_file 1200\npgfault 11\npgmajfault 2\n",
		"memory.swap.current": "4\n",
		"memory.events":       "low 0\nhigh 0\nmax 5\noom 2\noom_kill 1\noom_group_kill 0\n",
		"pids.current":        "6\n",
		"io.stat":             "8:0 rbytes=1 wbytes=20 rios=3 wios=4 dbytes=0 dios=0\n8:16 rbytes=100 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n",
		"cpu.pressure":        "some avg10=12.34 avg60=5.06 avg300=100.00 total=31\nfull avg10=0.00 avg60=0.07 avg300=0.00 total=30\n",
		"memory.pressure":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=21\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=20\n",
		"io.pressure":         "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=10\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "a", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got cri.Usage
	if !NewReader(root, true).Read("/a", &got) {
		t.Fatal("not read")
	}
	p := got.Pressure
	if p == nil || *p != (cri.Pressure{CPU: cri.Stall{Some: cri.Waited{Total: 31, Avg10: 1234, Avg60: 506, Avg300: 10000}, Full: cri.Waited{Total: 30, Avg60: 7}},
		Memory: cri.Stall{Some: cri.Waited{Total: 21}, Full: cri.Waited{Total: 20}}, IO: cri.Stall{Some: cri.Waited{Total: 11}, Full: cri.Waited{Total: 10}}}) {
		t.Errorf("pressure %+v", p)
	}
	got.Pressure = nil
	want := cri.Usage{CPU: 1500e3, UserCPU: 1000e3, SystemCPU: 500e3, Memory: 5000, WorkingSet: 3800, RSS: 100, Cache: 200, Mapped: 50, Swap: 4, Faults: 11, MajorFaults: 2,
		Rest: cri.Rest{Periods: 10, ThrottledPeriods: 3, Throttled: 7e3, OOMKills: 1, Processes: 6, ReadBytes: 101, WrittenBytes: 20, ReadCalls: 4, WriteCalls: 4}}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, name := range []string{"cpu.stat", "io.stat", "cpu.pressure", "memory.pressure", "io.pressure"} { // what a root has
		data, err := os.ReadFile(filepath.Join(root, "a", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var whole cri.Usage
	NewReader(root, true).Read("/", &whole) // its memory is /proc's
	if whole.CPU == 0 || whole.ReadBytes != 101 || whole.Pressure == nil {
		t.Errorf("the root: %+v", whole)
	}
	if NewReader(root, true).Read("/gone", &got) {
		t.Error("what does not exist was read")
	}
}

// A cgroup that goes while it is read is not read by halves.
func TestGoesWhileRead(t *testing.T) {
	for _, core := range []bool{false, true} {
		dir := t.TempDir()
		for name, text := range map[string]string{"cpu.stat": "usage_usec 1500\n", "memory.current": "5000\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		stat := filepath.Join(dir, "memory.stat")
		if err := syscall.Mkfifo(stat, 0o600); err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() { // who opens a pipe waits for the other end: it is being read now
			f, err := os.OpenFile(stat, os.O_WRONLY, 0)
			if err == nil {
				err = errors.Join(os.RemoveAll(dir), f.Close())
			}
			gone <- err
		}()
		r, read := NewReader(filepath.Dir(dir), true), (*Reader).Read
		if core {
			read = (*Reader).ReadCore
		}
		var got cri.Usage
		if read(r, "/"+filepath.Base(dir), &got) {
			t.Errorf("core %t: read by halves: %+v", core, got)
		}
		if err := <-gone; err != nil {
			t.Error(err)
		}
	}
}

// burn is what the child of TestReadUnderLoad does: once it is told to, it uses memory and a known amount of CPU time, and
// says so.
func TestMain(m *testing.M) {
	if os.Getenv("CGROUP_TEST_BURN") == "" {
		os.Exit(m.Run())
	}
	fmt.Println("started")
	bufio.NewReader(os.Stdin).ReadString('\n') //nolint:errcheck // it is only a sign
	before := used()
	// Not from Go's heap: beside that the race detector keeps memory of its own.
	held, err := syscall.Mmap(-1, 0, 64<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		panic(err)
	}
	for i := range held {
		held[i] = byte(i)
	}
	for used()-before < int64(500*time.Millisecond) {
		for i := range 1 << 20 {
			held[i]++
		}
	}
	fmt.Println(used() - before)
	bufio.NewReader(os.Stdin).ReadString('\n') //nolint:errcheck // it is only a sign
	syscall.Munmap(held)                       //nolint:errcheck // the process ends
	os.Exit(0)
}

// used is the CPU time of this process.
func used() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) //nolint:errcheck // it does not fail
	return u.Utime.Nano() + u.Stime.Nano()
}

// What is read is what the program says of itself.
func TestReadUnderLoad(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	name := fmt.Sprintf("/minik8s-test-reader-%d", os.Getpid())
	dirs := []string{filepath.Join(Mounted, name)}
	if !Unified() {
		dirs = nil
		for _, c := range []string{"cpu", "cpuacct", "memory", "pids", "blkio"} {
			dirs = append(dirs, filepath.Join(Mounted, c, name))
		}
	}
	burner := exec.Command(os.Args[0])
	burner.Env = append(os.Environ(), "CGROUP_TEST_BURN=1", "GOMAXPROCS=1")
	stdin, err := burner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := burner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := burner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		burner.Process.Kill() //nolint:errcheck // it has ended
		burner.Wait()         //nolint:errcheck // it was killed
		for _, dir := range dirs {
			if err := removeSoon(dir); err != nil {
				t.Error(err)
			}
		}
	})
	lines := bufio.NewReader(stdout)
	if _, err := lines.ReadString('\n'); err != nil { // what it needs to start is not counted
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(burner.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(Mounted, Unified())
	var before, after cri.Usage
	if !r.Read(name, &before) {
		t.Fatal("not read")
	}
	fmt.Fprintln(stdin) //nolint:errcheck // the child would not answer
	said, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if !r.Read(name, &after) {
		t.Fatal("not read")
	}
	own, err := strconv.ParseFloat(strings.TrimSpace(said), 64)
	if err != nil {
		t.Fatal(err)
	}
	if seen := float64(after.CPU - before.CPU); math.Abs(seen-own)/own > 0.02 {
		t.Errorf("it says it used %.1f ms, and %.1f ms were read", own/1e6, seen/1e6)
	}
	if after.UserCPU+after.SystemCPU < after.CPU/2 || after.UserCPU > 2*after.CPU {
		t.Errorf("user %d and system %d of %d", after.UserCPU, after.SystemCPU, after.CPU)
	}
	if held := after.WorkingSet - before.WorkingSet; held < 64<<20 || held > 72<<20 {
		t.Errorf("it holds 64 MiB, and %d KiB were read", held>>10)
	}
	if after.RSS < 64<<20 || after.Faults == 0 || after.Processes < 1 || after.Peak != 0 && after.Peak < after.WorkingSet {
		t.Errorf("%+v", after)
	}
}
