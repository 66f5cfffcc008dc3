package roles_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// open is what user 65534 of this machine can read or write below the directories, or could run as
// another user: by the kernel's own answer to that user, and so not by the modes alone.
func open(t *testing.T, dirs ...string) []string {
	t.Helper()
	args := append(dirs, "(", "-readable", "-o", "-writable", "-o", "-perm", "/6000", "-type", "f", ")", "-print")
	cmd := exec.Command("find", args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, _ := cmd.Output() //nolint:errcheck // it fails at every closed directory, which is expected
	return strings.Fields(string(out))
}

// everything is a pod that has what must not be seen, and that looks at it all as a user without rights: what
// it finds wrong it says.
func everything() *corev1.Pod {
	user, group := int64(1000), int64(2000)
	pod := shell("everything", `
		set -e
		cd /v
		test "$(cat secret/key)" = hidden || { echo no secret; exit 1; }
		test "$(cat projected/key)" = hidden || { echo no projected secret; exit 1; }
		test -s projected/token || { echo no token; exit 1; }
		test "$(cat config/name)" = value || { echo no config; exit 1; }
		test "$(cat sub/name)" = value 2>/dev/null || test "$(cat sub)" = value || { echo no subPath; exit 1; }
		echo x > empty/file && echo x > memory/file && echo x > part/file || { echo not writable; exit 1; }
		test "$(stat -c %g empty/file)" = 2000 || { echo not of the group; exit 1; }
		cp /bin/busybox empty/tool && chmod 4777 empty/tool
		echo y > /dev/shm/x && echo z > /dev/stderr || { echo no devices; exit 1; }
		grep -q everything /etc/hostname && test -r /etc/hosts -a -r /etc/resolv.conf || { echo no etc; exit 1; }
		touch /v/empty/seen; `+forever)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &user, RunAsGroup: &user, FSGroup: &group}
	expiry := int64(3600)
	secret := corev1.LocalObjectReference{Name: "hidden"}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hidden"}}},
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "plain"}}}},
		{Name: "projected", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: secret}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &expiry}},
		}}}},
	}
	c := &pod.Spec.Containers[0]
	c.Env = []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: secret, Key: "key"}}}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "empty", MountPath: "/v/empty"}, {Name: "memory", MountPath: "/v/memory"},
		{Name: "secret", MountPath: "/v/secret"}, {Name: "config", MountPath: "/v/config"}, {Name: "projected", MountPath: "/v/projected"},
		{Name: "config", MountPath: "/v/sub", SubPath: "name"}, {Name: "empty", MountPath: "/v/part", SubPath: "deep/er"}}
	return pod
}

// expose opens the data directory and the one above, which is the tests' own and hides all by itself.
func (p *process) expose() {
	p.t.Helper()
	above := filepath.Dir(p.dir)
	p.t.Cleanup(func() { os.Chmod(above, 0o700) }) //nolint:errcheck // it goes soon
	for _, dir := range []string{above, p.dir} {
		if err := os.Chmod(dir, 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
}

// closedWithin wants each part of the data directory closed by itself, also where somebody opens what is around it.
func (p *process) closedWithin() {
	p.t.Helper()
	p.expose()
	listed := map[string]string{
		p.dir:                          "opened just now",
		filepath.Join(p.dir, "images"): "put there by the test, and the content of public archives",
	}
	for _, path := range open(p.t, p.dir) {
		if _, ok := listed[path]; !ok && filepath.Dir(path) != filepath.Join(p.dir, "images") {
			p.t.Errorf("in a directory that was opened another user can use %s", path)
		}
	}
}

// Nobody but root sees what the daemon and its pods keep on the machine, while the pods' own users see all
// that is theirs. A directory that an earlier version left open is closed.
func TestNothingForOtherUsers(t *testing.T) {
	needRoot(t)
	p := newProcess(t, functionBase(t)...)
	p.expose()
	c := p.up()
	p.make(c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hidden"}, Data: map[string][]byte{"key": []byte("hidden")}})
	p.make(c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "plain"}, Data: map[string]string{"name": "value"}})
	p.create(c, everything())
	p.running(c, "everything")
	// The pod has seen all that is its own. (A probe could look, but in a chroot a command that is added to a container
	// does not see its files.)
	f := &caller{process: p, api: c}
	f.add("secretive", "def main(p): return p", nil)
	if out := f.ctl("func", "call", "secretive", `{"hidden": 1}`); out != `{"hidden": 1}` {
		t.Fatal(out)
	}
	p.eventually("the pod is content", func() bool {
		seen, err := filepath.Glob(filepath.Join(p.dir, "pods", "*", "volumes", "*", "*", "seen"))
		return err == nil && len(seen) == 1
	})

	// Elsewhere: where shims would listen, and where containerd's socket is if the path is too long.
	elsewhere, _ := filepath.Glob("/run/minik8s-*") //nolint:errcheck // the pattern is good
	dirs := append([]string{p.dir, "/run/containerd"}, elsewhere...)
	for _, path := range open(t, dirs...) {
		t.Errorf("another user can use %s", path)
	}
	p.closedWithin()
	if found := open(t, filepath.Join(p.dir, "images")); len(found) == 0 {
		t.Error("the search finds nothing at all")
	}
	p.stop()
	c = p.up()
	if found := open(t, p.dir); len(found) > 0 {
		t.Errorf("after a start it is still open: %v", found)
	}
	if _, err := c.Delete(context.Background(), client.Key{Kind: api.Pods, Namespace: "default", Name: "everything"}, nil); err != nil {
		t.Fatal(err)
	}
	p.eventually("gone", func() bool { return p.pod(c, "everything") == nil })
}
