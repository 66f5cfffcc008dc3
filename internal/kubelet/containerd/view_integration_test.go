package containerd

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

var updateView = flag.Bool("update-view", false, "write down what a container sees as what it has to see")

// look prints what a process sees of its isolation. What differs between machines is left out: which of the masked files the
// kernel has, the file systems' kinds, how cgroups are mounted.
const look = `
grep -E '^(Uid|Gid|Groups|NoNewPrivs|Seccomp|Cap[A-Z][a-z]*|SigBlk|SigIgn|SigPnd|Umask):' /proc/self/status
echo "session and terminal: $(cut -d' ' -f5-8 /proc/1/stat)"
echo "nice $(cut -d' ' -f19 /proc/1/stat)"
grep -E '^Max (processes|core file size|locked memory|pending signals)' /proc/self/limits
echo "oom $(cat /proc/self/oom_score_adj)"
for f in /proc/self/fd/*; do readlink $f; done | sed -E 's/:\[.*//; s/^.*\/containers\/.*\/std(in|out|err)$/pipe/' | sort -u
echo dev; ls -l /dev | awk 'NR>1{sub(/, /, ":"); print $1,$3,$4,$5,$NF}'
echo mounts; awk '{print $5,$6}' /proc/self/mountinfo | grep -vE '^/(sys/fs/cgroup|sys/firmware|sys/devices|proc/(acpi|asound|interrupts|kcore|keys|latency_stats|timer_list|timer_stats|sched_debug|scsi)( |$))' | sed 's/,relatime//' | sort
echo not masked; for f in /proc/kcore /proc/keys /proc/latency_stats /proc/timer_list /proc/timer_stats /proc/sched_debug /proc/interrupts; do [ "$(head -c 1 $f 2>/dev/null | wc -c)" = 0 ] || echo $f; done
for f in /proc/acpi /proc/asound /proc/scsi /sys/firmware; do [ "$(ls $f 2>/dev/null | wc -l)" = 0 ] || echo $f; done
echo written; for f in /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/irq/default_smp_affinity /sys/kernel/mm/ksm/run; do (echo 0 >$f) 2>/dev/null && echo $f; done
echo made; mknod /tmp/null c 1 3 2>/dev/null && echo null; mknod /tmp/disk b 8 0 2>/dev/null && head -c1 /tmp/disk 2>&1 | sed 's/.*: //'
mount -t tmpfs x /mnt 2>/dev/null && echo mounted; unshare -n true 2>/dev/null && echo unshared
env | grep -vE '^(HOSTNAME|SHLVL|PWD|OLDPWD)=' | sort
`

// What a container sees, and a process that is added to it, is what it saw when containerd's shim and "runc start" made it: no
// namespace, capability, filter, mask or limit is missing, and no file is open that was not. Only its pipes are named ones now, of
// a directory that it cannot reach.
func TestWhatAContainerSees(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	var views []string
	uid := int64(1000)
	for i, change := range []func(*cri.ContainerConfig){
		func(*cri.ContainerConfig) {},
		func(c *cri.ContainerConfig) { c.Security.RunAsUser, c.Security.NoNewPrivileges = &uid, true },
		func(c *cri.ContainerConfig) { c.Security.Privileged = true },
	} {
		cfg := b.containerConfig("web", fmt.Sprintf("c%d", i), "sh", "-c", look)
		change(&cfg)
		id := b.start(cfg)
		b.waitExit(id)
		view := b.log(id)
		if cfg.Security.Privileged { // it has the machine's devices and mounts
			view, _, _ = strings.Cut(view, "dev\n")
		}
		views = append(views, view)
	}
	id := b.start(b.containerConfig("web", "long", "sleep", "1000"))
	var out strings.Builder
	if code, err := b.Exec(b.ctx, id, cri.ExecConfig{Command: []string{"sh", "-c", look}, Stdout: &out}); err != nil || code != 0 {
		t.Errorf("exec: %d, %v", code, err)
	}
	views = append(views, out.String())
	got := asOurs(t, strings.Join(views, "----\n")) + "----\n" + b.namespaces(id)
	file := filepath.Join("testdata", "view.txt")
	if *updateView {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it sees\n%s", difference(string(want), got))
	}
}

var ignored = regexp.MustCompile(`SigIgn:.*\n`)

// mask is a set of /proc/PID/status.
func mask(text string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
	if err != nil {
		panic(err) // the kernel writes it
	}
	return n
}

// asOurs replaces what a process has of the daemon, the machine's own limits, capabilities and niceness, by a word; and the signals that
// are ignored, which are among those that the daemon was started with.
func asOurs(t *testing.T, view string) string {
	t.Helper()
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	view = strings.ReplaceAll(view, fmt.Sprintf("nice %d\n", 20-nice), "nice as the daemon\n") // the system call says 20 less than it
	for _, file := range []string{"limits", "status"} {
		data, err := os.ReadFile("/proc/self/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			name, _, _ := strings.Cut(line, "  ")
			if file == "status" {
				var value string
				name, value, _ = strings.Cut(line, ":")
				switch name {
				case "CapBnd":
					for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
						view = strings.ReplaceAll(view, set+":"+value, set+" as the daemon\n")
					}
				case "SigIgn":
					view = ignored.ReplaceAllStringFunc(view, func(there string) string {
						if own, its := mask(value), mask(strings.TrimPrefix(there, "SigIgn:")); its&^own != 0 {
							return there
						}
						return "SigIgn as the daemon\n"
					})
				}
				continue
			}
			view = strings.ReplaceAll(view, line, name+" as the daemon\n")
		}
	}
	return view
}

var inode = regexp.MustCompile(`\d+`)

// namespaces says which of a container's namespaces are its own.
func (b *bench) namespaces(id string) string {
	b.t.Helper()
	var out strings.Builder
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", b.containers.Get(id).Report().Pid, kind))
		if err != nil {
			b.t.Fatal(err)
		}
		ours, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			b.t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s own %t\n", kind, inode.FindString(theirs) != inode.FindString(ours))
	}
	return out.String()
}

// difference lists the lines that only one of two texts has.
func difference(want, got string) string {
	var out []string
	for _, side := range []struct{ sign, text, other string }{{"-", want, got}, {"+", got, want}} {
		have := map[string]int{}
		for line := range strings.Lines(side.other) {
			have[line]++
		}
		for line := range strings.Lines(side.text) {
			if have[line]--; have[line] < 0 {
				out = append(out, side.sign+line)
			}
		}
	}
	return strings.Join(out, "")
}
