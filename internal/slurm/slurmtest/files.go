package slurmtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"embed"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

//go:embed files
var files embed.FS

// uid is the number of the user and the group, which nobody on the machine has.
const uid = 20077

// commands are those of Slurm's that are counted.
var commands = []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun", "sacctmgr"}

// write writes the cluster's files.
func (c *Cluster) write(o Options) error {
	vars := map[string]string{"MINJOBAGE": strconv.Itoa(o.MinJobAge + 300*b2i(o.MinJobAge == 0)), "SESSIONS": strconv.Itoa(o.MaxSessions + 10*b2i(o.MaxSessions == 0)),
		"LOGIN": "UsePAM no\nPasswordAuthentication yes\nKbdInteractiveAuthentication no"}
	if o.OneTime > 0 {
		vars["LOGIN"] = "UsePAM yes\nPasswordAuthentication no\nKbdInteractiveAuthentication yes\nAuthenticationMethods keyboard-interactive"
	}
	for range o.OneTime {
		c.OneTimePasswords = append(c.OneTimePasswords, rand.Text())
	}
	hash, err := exec.Command("openssl", "passwd", "-6", c.Password).Output()
	if err != nil {
		return err
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return err
	}
	group, err := os.ReadFile("/etc/group")
	if err != nil {
		return err
	}
	key, authorized, err := keyPair()
	if err != nil {
		return err
	}
	c.Key = key
	w := writer{dir: c.dir}
	w.text("etc/passwd", strings.TrimSpace(string(passwd))+fmt.Sprintf("\n%s:x:%d:%[2]d::%s:/bin/bash\n", c.User, uid, c.Home), 0o644)
	w.text("etc/group", strings.TrimSpace(string(group))+fmt.Sprintf("\n%s:x:%d:\n", c.User, uid), 0o644)
	// The machine's own passwords stay where they are.
	w.text("etc/shadow", c.User+":"+strings.TrimSpace(string(hash))+":19000:0:99999:7:::\n", 0o600)
	w.text("home/.ssh/authorized_keys", authorized+"\n", 0o644)
	w.text("new/.keep", "", 0o600)
	w.text("control/onetime", strings.Join(c.OneTimePasswords, "\n")+"\n", 0o600)
	w.text("gres.conf", strings.ReplaceAll("NodeName=@ Name=gpu File=/dev/null\nNodeName=@ Name=gpu File=/dev/zero\n", "@", strings.Join(c.Nodes, ",")), 0o644)
	for file, mode := range map[string]os.FileMode{"keep.sh": 0o755, "setup.sh": 0o755, "start": 0o755, "stop": 0o755, "onetime": 0o755, "pam": 0o644, "sshd_config": 0o600, "slurmdbd.conf": 0o600} {
		w.template(file, file, vars, mode)
	}
	if c.cgroup != "" {
		w.template("cgroup.conf", "cgroup.conf", vars, 0o644)
	}
	w.template("slurm.conf", "slurm.conf", vars, 0o644)
	w.add("slurm.conf", c.slurmConf(o.Accounting))
	w.template("profile.d/modules.sh", "modules.sh", vars, 0o644)
	for _, name := range commands {
		w.template("bin/"+name, "wrapper", map[string]string{"COMMAND": name}, 0o755)
		w.text("control/"+name+".calls", "", 0o666)
	}
	if w.err != nil {
		return w.err
	}
	return c.newHostKey()
}

// slurmConf is what of slurm.conf depends on the options.
func (c *Cluster) slurmConf(accounting bool) string {
	var b strings.Builder
	if c.cgroup != "" {
		b.WriteString("TaskPlugin=task/cgroup\n")
	} else {
		b.WriteString("TaskPlugin=task/none\nJobAcctGatherParams=OverMemoryKill\n")
	}
	if accounting {
		b.WriteString("AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=login\nAccountingStorageTRES=gres/gpu\n")
	}
	for i, n := range c.Nodes {
		fmt.Fprintf(&b, "NodeName=%s NodeHostname=login NodeAddr=127.0.0.1 Port=%d CPUs=64 RealMemory=64000 Gres=gpu:2 State=UNKNOWN\n", n, 17001+i)
	}
	b.WriteString("PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n")
	for i, p := range []string{"gpu", "dgx2"} {
		// Jobs of the second come first: those of the first have to end for them.
		fmt.Fprintf(&b, "PartitionName=%s Nodes=%s Default=%s MaxTime=INFINITE State=UP PriorityTier=%d PreemptMode=%s\n", p, strings.Join(c.Nodes, ","),
			[]string{"YES", "NO"}[i], i+1, []string{"CANCEL", "OFF"}[i])
	}
	return b.String()
}

// writer writes files below a directory; the first error stays.
type writer struct {
	dir string
	err error
}

func (w *writer) text(name, text string, mode os.FileMode) {
	path := filepath.Join(w.dir, name)
	for _, f := range []func() error{
		func() error { return os.MkdirAll(filepath.Dir(path), 0o755) },
		func() error { return os.WriteFile(path, []byte(text), mode) },
		func() error { return os.Chmod(path, mode) }, // whatever the umask
	} {
		if w.err == nil {
			w.err = f()
		}
	}
}

// template writes one of files/, with @NAME@ replaced.
func (w *writer) template(name, file string, vars map[string]string, mode os.FileMode) {
	text, err := files.ReadFile("files/" + file)
	if err != nil && w.err == nil {
		w.err = err
	}
	pairs := []string{"@DIR@", w.dir}
	for k, v := range vars {
		pairs = append(pairs, "@"+k+"@", v)
	}
	w.text(name, strings.NewReplacer(pairs...).Replace(string(text)), mode)
}

// add adds text to a file.
func (w *writer) add(name, text string) {
	old, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && w.err == nil {
		w.err = err
	}
	w.text(name, string(old)+text, 0o644)
}

// keyPair makes a key, private and as a line of authorized_keys.
func keyPair() (private []byte, authorized string, err error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, "", err
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return nil, "", err
	}
	return pem.EncodeToMemory(block), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))), nil
}

func (c *Cluster) newHostKey() error {
	private, public, err := keyPair()
	if err != nil {
		return err
	}
	c.HostKey = public
	return os.WriteFile(c.dir+"/hostkey", private, 0o600)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
