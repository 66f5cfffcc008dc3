package slurmtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// enter runs a command in the cluster's namespaces, with the root and folder that the cluster has: the test may run in a chroot.
func (c *Cluster) enter(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(c.pid), "-r", "-w", "-m", "-p", "-n", "-u", "-i", "--"}, args...)...)
}

// Do runs a line of shell as the user on the login node and returns what it printed, errors too.
func (c *Cluster) Do(line string) string {
	c.t.Helper()
	return said(c.enter("runuser", "-u", c.User, "--", "env", "HOME="+c.Home, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "sh", "-c", "cd; "+line))
}

// Root is like Do, as the administrator. What it calls of Slurm's commands is not counted.
func (c *Cluster) Root(line string) string {
	c.t.Helper()
	return said(c.enter("env", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "sh", "-c", line))
}

func said(cmd *exec.Cmd) string {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return strings.TrimSpace(string(out)) + " (" + err.Error() + ")"
	}
	return strings.TrimSpace(string(out))
}

// Stop kills a part, as a power cut would: sshd, slurmdbd, mariadbd, or a node with all that runs on it. Open ssh connections are not
// sshd's; see Cut. slurmctld may write down its state, which would miss the jobs of the last seconds. Stop returns when the part is
// gone; Begin starts it again.
func (c *Cluster) Stop(part string) {
	c.t.Helper()
	if out, err := c.enter(c.dir+"/stop", part).CombinedOutput(); err != nil {
		c.t.Fatalf("stopping %s: %v %s", part, err, out)
	}
}

// Begin starts a part that was stopped, and returns when it answers.
func (c *Cluster) Begin(part string) {
	c.t.Helper()
	if out, err := c.enter(c.dir+"/start", part).CombinedOutput(); err != nil {
		c.t.Fatalf("starting %s: %v %s\n%s", part, err, out, c.logs())
	}
}

// Cut breaks all ssh connections; new ones are taken.
func (c *Cluster) Cut() {
	c.t.Helper()
	c.Root("pkill -9 -f '^sshd: [^/]'; true") // the listener's is "sshd: /usr/sbin/sshd ..."
}

// NewHostKey gives the login node another key, as somebody in between would have, and breaks all connections.
func (c *Cluster) NewHostKey() {
	c.t.Helper()
	if err := c.newHostKey(); err != nil {
		c.t.Fatal(err)
	}
	c.Stop("sshd")
	c.Cut()
	c.Begin("sshd")
}

// Expire lets a running job's time limit pass. Slurm looks at limits every 30 s: that long it may take until the job is TIMEOUT.
func (c *Cluster) Expire(job string) {
	c.t.Helper()
	if out := c.Root("scontrol update jobid=" + job + " EndTime=now+1"); out != "" {
		c.t.Fatalf("the time limit of job %s: %s", job, out)
	}
}

// Before has lines of shell run before each call of one of Slurm's commands, as part of a script whose arguments are the command's:
// "sleep 5" makes it slow, "echo no >&2; exit 1" has it fail. "" ends that. After is the same for after it, with its exit code in
// $code.
func (c *Cluster) Before(command, lines string) { c.t.Helper(); c.control(command+".before", lines) }

// After is like Before.
func (c *Cluster) After(command, lines string) { c.t.Helper(); c.control(command+".after", lines) }

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

// Calls is how often one of Slurm's commands was called, by Do or over ssh.
func (c *Cluster) Calls(command string) int {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "control", command+".calls"))
	if err != nil {
		c.t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// logs are the ends of the parts' logs.
func (c *Cluster) logs() string {
	var b strings.Builder
	paths, _ := filepath.Glob(c.dir + "/log/*.log") //nolint:errcheck // the pattern is good
	for _, path := range paths {
		text, _ := os.ReadFile(path) //nolint:errcheck // as far as it goes
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(path), text[max(0, len(text)-3000):])
	}
	return b.String()
}
