package slurmtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Options are what a test may want otherwise.
type Options struct {
	Nodes       int   // slurmd's, called n1, n2...; 0: two
	Accounting  bool  // with slurmdbd and MariaDB, so that sacct answers
	HomeBytes   int64 // the size of the home's disk; 0: the machine's
	MaxSessions int   // of a connection; 0: ten, as sshd has it
	OneTime     int   // so many one-time passwords, which are then the only way in (keyboard-interactive)
	ThisNetwork bool  // it is in the network namespace of the caller, and not in one of its own
	MinJobAge   int   // seconds for which squeue knows jobs that have ended; 0: 300, as Slurm has it
}

// Cluster is a Slurm cluster. Its methods fail the test.
type Cluster struct {
	Addr             string // of the login node, in the cluster's network namespace
	User, Password   string
	OneTimePasswords []string // each lets in once
	Key              []byte   // the user's private key, in OpenSSH's form
	HostKey          string   // "ssh-ed25519 AAAA..."
	Home             string
	Nodes            []string
	OutOfMemory      bool // a job that takes too much memory ends as OUT_OF_MEMORY, and not as FAILED

	t      testing.TB
	dir    string
	cgroup string // of its jobs' memory; "" where there is none
	pid    int    // process 1 of the namespaces, as the machine sees it
}

// programs are what has to be there.
var (
	programs           = []string{"munged", "slurmctld", "slurmd", "sshd", "sbatch", "squeue", "unshare", "nsenter", "runuser", "openssl", "pgrep", "pkill", "ip", "ss"}
	accountingPrograms = []string{"slurmdbd", "mariadbd"}
)

// Start starts a cluster that ends with the test. Without root or the programs, and with -short, the test is skipped.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	if testing.Testing() && testing.Short() {
		t.Skip("a Slurm cluster needs more time than -short has")
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED, AND WITH IT EVERYTHING ABOUT SLURM: a Slurm cluster needs root")
	}
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin") //nolint:errcheck // a name without NUL
	need := programs
	if o.Accounting {
		need = slices.Concat(programs, accountingPrograms)
	}
	for _, p := range need {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED, AND WITH IT EVERYTHING ABOUT SLURM: there is no %s here; `make testtools` installs it", p)
		}
	}
	// Not where other temporary files are: the cluster's user has to get there, too.
	dir, err := os.MkdirTemp("/tmp", "minik8s-slurm-")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Addr: "127.0.0.1:22", User: "hpc", Password: "correct horse", Home: dir + "/home", t: t, dir: dir}
	for i := range max(o.Nodes, 2*b2i(o.Nodes == 0)) {
		c.Nodes = append(c.Nodes, fmt.Sprintf("n%d", i+1))
	}
	c.makeCgroup()
	c.OutOfMemory = c.cgroup != ""
	if err := c.write(o); err != nil {
		c.remove()
		t.Fatal(err)
	}
	c.run(o)
	return c
}

// makeCgroup makes the cgroup whose limits on memory the jobs get.
func (c *Cluster) makeCgroup() {
	const root = "/sys/fs/cgroup/memory"
	if _, err := os.Stat(root + "/memory.oom_control"); err != nil {
		return
	}
	dir := filepath.Join(root, filepath.Base(c.dir))
	if os.Mkdir(dir, 0o755) == nil { // or it may not: the tests do without
		c.cgroup = dir
	}
}

// remove removes what keep.sh would remove, before it runs.
func (c *Cluster) remove() {
	os.RemoveAll(c.dir) //nolint:errcheck // what cannot be removed stays visible
	if c.cgroup != "" {
		os.Remove(c.cgroup) //nolint:errcheck // as above
	}
}

// run starts the cluster and waits until it answers.
func (c *Cluster) run(o Options) {
	c.t.Helper()
	cmd := exec.Command("sh", c.dir+"/keep.sh", c.dir, c.cgroup)
	cmd.Env = append(os.Environ(), "NODES="+strings.Join(c.Nodes, " "), fmt.Sprintf("OWNER=%d:%d", uid, uid))
	if !o.ThisNetwork {
		cmd.Env = append(cmd.Env, "NETWORK=--net")
	}
	if o.Accounting {
		cmd.Env = append(cmd.Env, "ACCOUNTING=yes")
	}
	if o.HomeBytes > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("HOME_BYTES=%d", o.HomeBytes))
	}
	// A signal from the terminal is for the test: this process cleans up after it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	in, err := cmd.StdinPipe() // it ends when this program ends, however it ends
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.remove()
		c.t.Fatal(err)
	}
	failed := false
	end := func() {
		if failed || c.t.Failed() && testing.Testing() && testing.Verbose() {
			c.t.Logf("the cluster's logs:\n%s", c.logs())
		}
		in.Close() //nolint:errcheck // it may be closed
		if err := cmd.Wait(); err != nil && !failed {
			c.t.Errorf("the cluster was not cleaned up: %v %s", err, problems.String())
		}
	}
	c.t.Cleanup(end)
	if c.pid, err = ready(out); err != nil {
		failed = true
		c.t.Fatalf("the cluster did not start: %v %s", err, problems.String())
	}
}

// ready waits until keep.sh and setup.sh have said what they have to: the number of unshare's process, and "ready". It returns
// that of its child, which is process 1 of the namespaces.
func ready(r io.Reader) (pid int, err error) {
	var said []string
	for lines := bufio.NewScanner(r); lines.Scan(); said = append(said, lines.Text()) {
		if lines.Text() != "ready" {
			continue
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]s/task/%[1]s/children", said[0]))
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(children)))
	}
	return 0, fmt.Errorf("it said %q and ended", said)
}
