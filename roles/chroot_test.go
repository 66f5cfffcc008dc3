package roles_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// A daemon in a chroot works as elsewhere: what exec runs is in the container, also after a kill, and nothing is left.
func TestInAChroot(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	if err := unix.Mount("root", root, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	// Not all of / with what is mounted below: that would be the mounts of daemons of other tests, too, and while they are copied
	// here nobody can remove the directories on which they were.
	for dir, flags := range map[string]uintptr{"/proc": unix.MS_REC, "/sys": unix.MS_REC, "/dev": unix.MS_REC, "/etc": 0, "/usr": 0, "/bin": 0, "/sbin": 0,
		"/lib": 0, "/lib64": 0, os.TempDir(): 0} {
		if _, err := os.Stat(dir); err != nil {
			continue // not every machine has each
		}
		in := filepath.Join(root, dir)
		if err := os.MkdirAll(in, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(dir, in, "", unix.MS_BIND|flags, ""); err != nil {
			t.Fatal(dir, err)
		}
	}
	if err := unix.Mount("", root, "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		t.Fatal(err)
	}
	p := newProcess(t)
	p.root = root
	c := p.up()
	pod := shell("in", "echo here > /data/file; "+forever)
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	p.create(c, pod)
	before := p.running(c, "in")
	outside := filepath.Join(p.dir, "api.sock")
	check := func() {
		t.Helper()
		out, err := p.command("ctl", "exec", "in", "--", "sh", "-c", "test ! -e "+outside+" && cat /data/file")
		if err != nil || strings.TrimSpace(out) != "here" {
			t.Errorf("a command in the container says %q, %v", out, err)
		}
	}
	check()
	p.kill()
	c = p.up()
	p.create(c, shell("next", forever)) // when it runs, what was there has been looked at
	p.running(c, "next")
	if after := p.running(c, "in"); after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("it runs again: %+v", after.Status.ContainerStatuses)
	}
	check()
	if _, err := c.Delete(context.Background(), client.Key{Kind: api.Pods, Namespace: "default", Name: "in"}, nil); err != nil {
		t.Fatal(err)
	}
	p.eventually("deleted", func() bool { return p.pod(c, "in") == nil })
}
