package volume

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func same(s string) (string, error) { return s, nil }

func podWith(volumes ...corev1.Volume) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1"}, Spec: corev1.PodSpec{Volumes: volumes, Containers: []corev1.Container{{Name: "c"}}}}
	for _, v := range volumes {
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
	return p
}

func emptyDir(name string, medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
}

func hostPath(path string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
}

func TestEmptyDir(t *testing.T) {
	m := New(t.TempDir(), nil)
	p := podWith(emptyDir("data", ""))
	for range 2 { // setting up again keeps what is there
		if err := m.SetUp(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		mounts, err := m.Mounts(p, &p.Spec.Containers[0], same)
		if err != nil || len(mounts) != 1 || mounts[0].ContainerPath != "/data" {
			t.Fatalf("%+v, %v", mounts, err)
		}
		info, err := os.Stat(mounts[0].HostPath)
		if err != nil || info.Mode().Perm() != 0o777 {
			t.Fatalf("%v, %v", info, err)
		}
		f, err := os.OpenFile(filepath.Join(mounts[0].HostPath, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString("x")
		f.Close()
		if data, err := os.ReadFile(f.Name()); err != nil || len(data) == 0 {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := m.TearDown("u1"); err != nil {
			t.Fatal(err)
		}
	}
	if uids, err := m.Pods(); err != nil || len(uids) > 0 {
		t.Errorf("%v, %v", uids, err)
	}
}

func TestFSGroupOwnsTheVolume(t *testing.T) {
	needRoot(t)
	m := New(t.TempDir(), nil)
	p := podWith(emptyDir("data", ""), emptyDir("shm", corev1.StorageMediumMemory))
	group := int64(2000)
	p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &group}
	t.Cleanup(func() { _ = m.TearDown("u1") })
	if err := m.SetUp(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	mounts, err := m.Mounts(p, &p.Spec.Containers[0], same)
	if err != nil {
		t.Fatal(err)
	}
	for _, mount := range mounts {
		file := filepath.Join(mount.HostPath, "f")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Sys().(*syscall.Stat_t).Gid != 2000 {
			t.Errorf("%s: %+v, %v", mount.HostPath, info, err)
		}
	}
}

func TestMemoryHasItsSize(t *testing.T) {
	needRoot(t)
	m := New(t.TempDir(), nil)
	v := emptyDir("shm", corev1.StorageMediumMemory)
	size := resource.MustParse("1Mi")
	v.EmptyDir.SizeLimit = &size
	p := podWith(v)
	t.Cleanup(func() { _ = m.TearDown("u1") })
	for range 2 {
		if err := m.SetUp(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	mounts, err := m.Mounts(p, &p.Spec.Containers[0], same)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(mounts[0].HostPath, "big")
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o600); err == nil {
		t.Error("2 MiB fit into 1 MiB")
	}
	if err := m.TearDown("u1"); err != nil {
		t.Fatal(err)
	}
	left, err := mountsBelow(m.root)
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestHostPathTypes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		path string
		kind corev1.HostPathType
		err  string
	}{
		{dir, corev1.HostPathDirectory, ""}, {file, corev1.HostPathDirectory, "is not of type Directory"},
		{file, corev1.HostPathFile, ""}, {dir, corev1.HostPathFile, "is not of type File"},
		{filepath.Join(dir, "no"), corev1.HostPathDirectory, "does not exist"}, {filepath.Join(dir, "no"), corev1.HostPathFile, "does not exist"},
		{filepath.Join(dir, "new/deep"), corev1.HostPathDirectoryOrCreate, ""}, {file, corev1.HostPathDirectoryOrCreate, "is not of type"},
		{filepath.Join(dir, "new/file"), corev1.HostPathFileOrCreate, ""}, {filepath.Join(dir, "none/file"), corev1.HostPathFileOrCreate, "its directory does not exist"},
		{filepath.Join(dir, "sock"), corev1.HostPathSocket, ""}, {file, corev1.HostPathSocket, "is not of type Socket"},
		{"/dev/null", corev1.HostPathCharDev, ""}, {file, corev1.HostPathBlockDev, "is not of type BlockDevice"},
		{filepath.Join(dir, "any"), corev1.HostPathUnset, ""}, {"relative", corev1.HostPathUnset, "not an absolute path"},
	} {
		err := New(t.TempDir(), nil).SetUp(t.Context(), podWith(hostPath(c.path, c.kind)))
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s %s: %v", c.path, c.kind, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s %s: %v, want %q", c.path, c.kind, err, c.err)
		}
	}
}

func TestTearDownSparesTheHost(t *testing.T) {
	needRoot(t)
	m, precious := New(t.TempDir(), nil), t.TempDir()
	file := filepath.Join(precious, "sub", "keep")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := podWith(hostPath(precious, corev1.HostPathDirectory))
	p.Spec.Containers[0].VolumeMounts[0].SubPath = "sub"
	if err := m.SetUp(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.TearDown("u1") })
	for range 2 { // each start binds anew
		mounts, err := m.Mounts(p, &p.Spec.Containers[0], same)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(mounts[0].HostPath, "keep")); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.TearDown("u1"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestSubPathStaysInside(t *testing.T) {
	needRoot(t)
	m := New(t.TempDir(), nil)
	p := podWith(emptyDir("data", ""))
	if err := m.SetUp(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.TearDown("u1") })
	data := filepath.Join(m.PodDir("u1"), "volumes", "empty-dir", "data")
	for name, target := range map[string]string{"out": "/etc", "up": "../../../..", "in": "real"} {
		if err := os.Symlink(target, filepath.Join(data, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(sub string) (string, error) {
		p.Spec.Containers[0].VolumeMounts[0].SubPath = sub
		mounts, err := m.Mounts(p, &p.Spec.Containers[0], same)
		if err != nil {
			return "", err
		}
		return mounts[0].HostPath, nil
	}
	for _, sub := range []string{"out", "up", "out/passwd", "..", "a/../../b", "/etc", "out/new"} {
		if at, err := try(sub); err == nil {
			t.Errorf("%s leads to %s", sub, at)
		}
	}
	for _, sub := range []string{"new/deep", "real", "in", "file"} {
		at, err := try(sub)
		if err != nil {
			t.Errorf("%s: %v", sub, err)
			continue
		}
		if info, err := os.Lstat(at); err != nil || info.IsDir() == (sub == "file") || info.Mode()&os.ModeSymlink != 0 {
			t.Errorf("%s: %v, %v", sub, info, err)
		}
	}
	if info, err := os.Stat(filepath.Join(data, "new/deep")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestSubPathExpr(t *testing.T) {
	needRoot(t)
	m := New(t.TempDir(), nil)
	p := podWith(emptyDir("data", ""))
	if err := m.SetUp(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.TearDown("u1") })
	p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = "logs/$(NAME)"
	expand := func(s string) (string, error) { return strings.ReplaceAll(s, "$(NAME)", "web"), nil }
	if _, err := m.Mounts(p, &p.Spec.Containers[0], expand); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(m.PodDir("u1"), "volumes", "empty-dir", "data", "logs/web")); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	_, err := m.Mounts(p, &p.Spec.Containers[0], func(string) (string, error) { return "", errors.New("no NAME") })
	if err == nil || !strings.Contains(err.Error(), "no NAME") {
		t.Error(err)
	}
}

func TestEmptyDirMode(t *testing.T) {
	needRoot(t)
	for _, x := range []struct {
		mode    int32
		fsGroup *int64
		want    os.FileMode
	}{
		{0o700, nil, 0o700}, {0o1777, nil, 0o777 | os.ModeSticky}, {0o700, new(int64(2000)), 0o770 | os.ModeSetgid},
	} {
		m := New(t.TempDir(), nil)
		p := podWith(emptyDir("data", ""))
		p.Spec.Volumes[0].EmptyDir.Mode = &x.mode
		p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: x.fsGroup}
		if err := m.SetUp(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		mounts, err := m.Mounts(p, &p.Spec.Containers[0], same)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(mounts[0].HostPath); err != nil || info.Mode() != x.want|os.ModeDir {
			t.Errorf("%o: %v, %v", x.mode, info.Mode(), err)
		}
	}
}

func TestErrorsSayWhich(t *testing.T) {
	m := New(t.TempDir(), nil)
	p := podWith(hostPath("/no/such/thing", corev1.HostPathFile), corev1.Volume{Name: "disk",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}})
	err := m.SetUp(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), `"host"`) || !strings.Contains(err.Error(), `"disk"`) {
		t.Error(err)
	}
	for _, uid := range []string{"", ".", "..", "a/b"} {
		if m.TearDown(uid) == nil {
			t.Errorf("tore down %q", uid)
		}
	}
}

// Mount points are found among those of the whole machine, whatever their names.
func TestMountsIn(t *testing.T) {
	const info = `22 1 0:21 / / rw - ext4 /dev/vda rw
30 22 0:30 / /data/pods/uid/volumes/a rw - tmpfs tmpfs rw
31 22 0:31 / /data/pods/uid/volumes/a\040b\134c rw - tmpfs tmpfs rw
32 22 0:32 / /data/pods/uid2/volumes/a rw - tmpfs tmpfs rw
33 22 0:33 / /data/pods/uid rw - tmpfs tmpfs rw
34 22 0:34 /data/pods/uid/x /elsewhere rw - ext4 /dev/vda rw
35 22 0:35 / /data/pods/a\040pod/v rw - tmpfs tmpfs rw
short line
`
	for dir, want := range map[string][]string{
		"/data/pods/uid":   {"/data/pods/uid/volumes/a", `/data/pods/uid/volumes/a b\c`},
		"/data/pods/a pod": {"/data/pods/a pod/v"},
		"/data/pods/none":  nil,
	} {
		if got := mountsIn([]byte(info), dir); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

func TestIsMounted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := filepath.Join(t.TempDir(), "a b")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	is := func(want bool) {
		t.Helper()
		if got, err := isMounted(dir); err != nil || got != want {
			t.Errorf("%t, %v", got, err)
		}
	}
	is(false)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	is(true)
	if err := unmountBelow(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	is(false)
	if _, err := isMounted(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there")
	}
}
