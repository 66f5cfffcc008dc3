package slurmtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	_ "embed"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// Options are what a test may want otherwise.
type Options struct {
	HomeBytes   int64 // the size of the home's disk; 0: the machine's
	MaxSessions int   // of a connection; 0: ten, as sshd has it
	ThisNetwork bool  // it is in the network namespace of the caller, and not in one of its own
	MinJobAge   int   // seconds for which squeue knows jobs that have ended; 0: 300, as Slurm has it
}

// Cluster is a Slurm cluster. Its methods fail the test.
type Cluster struct {
	Addr           string // of the login node, in the cluster's network namespace
	User, Password string
	Key            []byte // the user's private key
	HostKey        string // "ssh-ed25519 AAAA..."
	Home           string

	t   testing.TB
	dir string
	pid int // process 1 of the namespaces, as the machine sees it
}

//go:embed setup.sh
var setup string

// programs are what has to be there, and where distributions put them beside PATH.
var programs = []string{"munged", "slurmctld", "slurmd", "sshd", "sbatch", "squeue", "unshare", "nsenter", "runuser"}

// Start starts a cluster that ends with the test. Without root or the programs the test is skipped.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a Slurm cluster needs root")
	}
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin") //nolint:errcheck // a name without NUL
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED, AND WITH IT EVERYTHING ABOUT SLURM: there is no %s here; `make testtools` installs it", p)
		}
	}
	// Not where other temporary files are: the cluster's user has to get there, too.
	dir, err := os.MkdirTemp("/tmp", "minik8s-slurm-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &Cluster{Addr: "127.0.0.1:22", User: "hpc", Password: "correct horse", Home: dir + "/home", t: t, dir: dir}
	c.write(o)
	args := []string{"--pid", "--fork", "--kill-child", "--mount", "--uts", "--ipc", "--mount-proc"}
	cmd := exec.Command("unshare")
	cmd.Env = os.Environ()
	if !o.ThisNetwork {
		args = append(args, "--net")
		cmd.Env = append(cmd.Env, "NETWORK=own")
	}
	cmd.Args = append(append(cmd.Args, args...), "sh", dir+"/setup.sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if o.HomeBytes > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("HOME_BYTES=%d", o.HomeBytes))
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	// Pdeathsig is the death of the thread that started it, so that thread stays.
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		<-ended
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
		close(ended)
		if t.Failed() && testing.Verbose() {
			t.Logf("the cluster's logs:\n%s", c.logs())
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		problems.WriteString(lines.Text() + "\n")
	}
	if lines.Text() != "ready" {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		t.Fatalf("the cluster did not start:\n%s\n%s", problems.String(), c.logs())
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	c.pid, _ = strconv.Atoi(strings.TrimSpace(string(children)))
	said := ""
	for end := time.Now().Add(15 * time.Second); strings.Count(said, "idle") < 4; time.Sleep(20 * time.Millisecond) { // two nodes in two partitions
		if said = c.Do("sinfo -h -N -o %T"); time.Now().After(end) {
			t.Fatalf("the nodes are not idle after a minute: %s", said)
		}
	}
	return c
}

// write writes the cluster's files.
func (c *Cluster) write(o Options) {
	c.t.Helper()
	put := func(name, text string, mode os.FileMode) {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			c.t.Fatal(err)
		}
	}
	add := func(name, line string) {
		old, err := os.ReadFile("/etc/" + name)
		if err != nil {
			c.t.Fatal(err)
		}
		put(name, strings.TrimRight(string(old), "\n")+"\n"+line+"\n", 0o644)
	}
	hash, err := exec.Command("openssl", "passwd", "-6", c.Password).Output()
	if err != nil {
		c.t.Skip("SKIPPED, AND WITH IT EVERYTHING ABOUT SLURM: there is no openssl here")
	}
	add("passwd", fmt.Sprintf("%s:x:20077:20077::%s:/bin/bash", c.User, c.Home))
	add("group", c.User+":x:20077:")
	add("shadow", c.User+":"+strings.TrimSpace(string(hash))+":19000:0:99999:7:::")
	key, authorized := c.keyPair()
	c.Key = key
	put("home/.ssh/authorized_keys", authorized+"\n", 0o644)
	c.newHostKey()
	put("sshd_config", fmt.Sprintf(`Port 22
ListenAddress 127.0.0.1
HostKey %s/hostkey
PidFile none
UsePAM no
PasswordAuthentication yes
StrictModes no
MaxSessions %d
MaxStartups 100
Subsystem sftp internal-sftp
`, c.dir, max(o.MaxSessions, 0)+10*b2i(o.MaxSessions == 0)), 0o600)
	age := o.MinJobAge
	if age == 0 {
		age = 300
	}
	put("slurm.conf", fmt.Sprintf(`ClusterName=test
SlurmctldHost=login(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire=3
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerNode=10
SlurmdParameters=config_overrides
GresTypes=gpu
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
StateSaveLocation=%[1]s/var
SlurmdSpoolDir=%[1]s/var/spool/%%n
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/%%n.pid
SlurmctldLogFile=%[1]s/log/slurmctld.log
SlurmdLogFile=%[1]s/log/%%n.log
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
SchedulerType=sched/backfill
MinJobAge=%[2]d
KillWait=1
OverTimeLimit=0
SlurmdTimeout=5
ReturnToService=2
JobRequeue=1
NodeName=n1 NodeHostname=login NodeAddr=127.0.0.1 Port=17001 CPUs=64 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
NodeName=n2 NodeHostname=login NodeAddr=127.0.0.1 Port=17002 CPUs=64 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
PartitionName=gpu Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
PartitionName=dgx2 Nodes=n1,n2 MaxTime=INFINITE State=UP
`, c.dir, age), 0o644)
	put("gres.conf", "NodeName=n[1-2] Name=gpu File=/dev/null\nNodeName=n[1-2] Name=gpu File=/dev/zero\n", 0o644)
	put("setup.sh", setup, 0o755)
	// start NAME starts a part of the cluster; each keeps its process's number in run/NAME.
	put("start", `#!/bin/sh
case $1 in
sshd) setsid /usr/sbin/sshd -D -f `+c.dir+`/sshd_config -E `+c.dir+`/log/sshd.log </dev/null >/dev/null 2>&1 & ;;
slurmctld) setsid slurmctld -D </dev/null >/dev/null 2>&1 & ;;
*) setsid slurmd -D -N "$1" </dev/null >/dev/null 2>&1 & ;;
esac
echo $! >`+c.dir+`/run/$1
`, 0o755)
	// module is what centres have; a login shell knows it.
	put("profile.d/modules.sh", `module() { [ "$1" = load ] || return 1; case $2 in missing*) echo "module: $2 is unknown" >&2; return 1;; esac; export LOADED="${LOADED:+$LOADED:}$2"; }
export -f module
`, 0o644)
	// Slurm's commands count their calls, and wait or fail when a test says so.
	for _, name := range []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo"} {
		put("bin/"+name, fmt.Sprintf(`#!/bin/sh
echo "$*" >>%[1]s/control/%[2]s.calls
[ ! -f %[1]s/control/%[2]s.before ] || . %[1]s/control/%[2]s.before
/usr/bin/%[2]s "$@"
code=$?
[ ! -f %[1]s/control/%[2]s.after ] || . %[1]s/control/%[2]s.after
exit $code
`, c.dir, name), 0o755)
		put("control/"+name+".calls", "", 0o666)
		if err := os.Chmod(filepath.Join(c.dir, "control", name+".calls"), 0o666); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := exec.Command("chown", "-R", "20077:20077", c.Home).Run(); err != nil {
		c.t.Fatal(err)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// keyPair makes a key, private and as a line of authorized_keys.
func (c *Cluster) keyPair() (private []byte, authorized string) {
	c.t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		c.t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		c.t.Fatal(err)
	}
	return pem.EncodeToMemory(block), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

func (c *Cluster) newHostKey() {
	c.t.Helper()
	private, public := c.keyPair()
	if err := os.WriteFile(c.dir+"/hostkey", private, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.HostKey = public
}

// enter runs a command in the cluster's namespaces.
func (c *Cluster) enter(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(c.pid), "-m", "-p", "-n", "-u", "-i", "--"}, args...)...)
}

// NetNS is the path of the cluster's network namespace.
func (c *Cluster) NetNS() string { return fmt.Sprintf("/proc/%d/ns/net", c.pid) }

// Do runs a line of shell as the user on the login node and returns what it printed, errors too.
func (c *Cluster) Do(line string) string {
	c.t.Helper()
	out, err := c.enter("runuser", "-u", c.User, "--", "env", "HOME="+c.Home, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "sh", "-c", "cd; "+line).CombinedOutput()
	if err != nil {
		return strings.TrimSpace(string(out)) + " (" + err.Error() + ")"
	}
	return strings.TrimSpace(string(out))
}

// Root is like Do, as the administrator.
func (c *Cluster) Root(line string) string {
	c.t.Helper()
	out, err := c.enter("env", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "sh", "-c", line).CombinedOutput()
	if err != nil {
		return strings.TrimSpace(string(out)) + " (" + err.Error() + ")"
	}
	return strings.TrimSpace(string(out))
}

// Stop kills a part: sshd, slurmctld, n1 or n2. Begin starts it again.
func (c *Cluster) Stop(part string) {
	c.t.Helper()
	c.Root("kill -9 $(cat " + c.dir + "/run/" + part + ")")
}

// Begin starts a part that was stopped.
func (c *Cluster) Begin(part string) {
	c.t.Helper()
	if out, err := c.enter(c.dir+"/start", part).CombinedOutput(); err != nil {
		c.t.Fatalf("starting %s: %v %s", part, err, out)
	}
}

// Cut breaks all ssh connections; new ones are taken.
func (c *Cluster) Cut() {
	c.t.Helper()
	c.Root("pkill -9 -f '^sshd: hpc'; true")
}

// NewHostKey gives the login node another key, as somebody in between would have.
func (c *Cluster) NewHostKey() {
	c.t.Helper()
	c.newHostKey()
	c.Stop("sshd")
	c.Cut()
	c.Begin("sshd")
}

// Before has lines of shell run before each call of one of Slurm's commands; "" ends that. After is the same for after it, with
// its exit code in $code.
func (c *Cluster) Before(command, lines string) { c.control(command+".before", lines) }

// After is like Before.
func (c *Cluster) After(command, lines string) { c.control(command+".after", lines) }

func (c *Cluster) control(name, lines string) {
	c.t.Helper()
	path := filepath.Join(c.dir, "control", name)
	err := os.Remove(path)
	if lines != "" {
		if err = os.WriteFile(path+".new", []byte(lines+"\n"), 0o644); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
}

// Calls is how often one of Slurm's commands was called.
func (c *Cluster) Calls(command string) int {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "control", command+".calls"))
	if err != nil {
		c.t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

func (c *Cluster) logs() string {
	var b strings.Builder
	for _, name := range []string{"slurmctld", "n1", "n2", "sshd"} {
		text, _ := os.ReadFile(c.dir + "/log/" + name + ".log")
		fmt.Fprintf(&b, "== %s\n%s\n", name, text[max(0, len(text)-3000):])
	}
	return b.String()
}

// DialContext connects from within the cluster's network namespace.
func (c *Cluster) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine, since it is in another namespace
		ns, err := os.Open(c.NetNS())
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{nil, err}
			return
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}
