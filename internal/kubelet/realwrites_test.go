package kubelet

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// Whatever a pod writes to the files that the node gives it, the node and other pods keep working.
func TestRealPodCannotFillTheNode(t *testing.T) {
	b := newRealBed(t)
	taken := func() (n int64) { // of the daemon's own tmpfs, and of the pods' directories
		var st unix.Statfs_t
		if err := unix.Statfs(filepath.Join(b.cfg.DataDir, "run"), &st); err != nil {
			t.Fatal(err)
		}
		n = int64(st.Blocks-st.Bfree) * st.Bsize
		err := filepath.WalkDir(b.cfg.DataDir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // it has just gone
			}
			if d.Name() == "run" || d.Name() == "containerd" {
				return fs.SkipDir
			}
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := taken()
	b.create(shell("greedy", "for f in /dev/termination-log /etc/hosts /etc/hostname /etc/resolv.conf; do yes 2>/dev/null >> $f; done; echo full; exit 3",
		func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }))
	greedy := b.api.await(t, "greedy", "ended", hasPhase(corev1.PodFailed))
	if got := b.logs("greedy", "main", &corev1.PodLogOptions{}); got != "full\n" {
		t.Errorf("the files took all there was: %q", got)
	}
	if took := taken() - before; took > 1<<20 {
		t.Errorf("it took %d bytes of the node", took)
	}
	if msg := greedy.Status.ContainerStatuses[0].State.Terminated.Message; len(msg) != maxTerminationMessage || !strings.HasPrefix(msg, "y\ny\n") {
		t.Errorf("a message of %d bytes: %.20q", len(msg), msg)
	}
	b.create(shell("other", "cat /etc/hosts; echo said > /dev/termination-log; exit 4", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }))
	other := b.api.await(t, "other", "ended", hasPhase(corev1.PodFailed))
	if end := other.Status.ContainerStatuses[0].State.Terminated; end.ExitCode != 4 || end.Message != "said\n" {
		t.Errorf("%+v", end)
	}
	// The next run of the kubelet knows the messages of this one.
	b.stop()
	kept := b.k.keptMessage(string(other.UID), "main", 0)
	if data, err := os.ReadFile(kept); err != nil || string(data) != "said\n" {
		t.Errorf("%q, %v", data, err)
	}
	b.start()
	b.remove("greedy")
	b.remove("other")
}

// A host whose own /etc/hosts is large gives it to its pods nevertheless.
func TestRealPodWithManyAliases(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("aliases", "wc -l < /etc/hosts", func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		for range 300 {
			p.Spec.HostAliases = append(p.Spec.HostAliases, corev1.HostAlias{IP: "192.0.2.7", Hostnames: []string{strings.Repeat("x", 60) + "." + strings.Repeat("y", 60), strings.Repeat(strings.Repeat("z", 60)+".", 4) + "q", strings.Repeat(strings.Repeat("z", 60)+".", 4) + "r"}})
		}
	}))
	b.api.await(t, "aliases", "ended", hasPhase(corev1.PodSucceeded))
	if got := strings.TrimSpace(b.logs("aliases", "main", &corev1.PodLogOptions{})); got != "310" {
		t.Errorf("%s lines", got)
	}
	b.remove("aliases")
}

// What a container says without a newline at its end is shown so.
func TestRealPodWithoutALastNewline(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("curt", "echo one; printf two; exit 1", func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}))
	p := b.api.await(t, "curt", "ended", hasPhase(corev1.PodFailed))
	if got := b.logs("curt", "main", &corev1.PodLogOptions{}); got != "one\ntwo" {
		t.Errorf("the log is %q", got)
	}
	if got := p.Status.ContainerStatuses[0].State.Terminated.Message; got != "one\ntwo" {
		t.Errorf("the message is %q", got)
	}
	b.remove("curt")
}
