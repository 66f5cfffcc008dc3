package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/kubelet/objects"
)

// shelf is a Source in memory.
type shelf struct {
	maps    map[string]*corev1.ConfigMap
	secrets map[string]*corev1.Secret
}

func (s *shelf) ConfigMap(_ context.Context, ns, name string) (*corev1.ConfigMap, error) {
	if m := s.maps[name]; m != nil {
		return m, nil
	}
	return nil, &objects.Missing{Ref: objects.Ref{Kind: api.ConfigMaps, Namespace: ns, Name: name}}
}

func (s *shelf) Secret(_ context.Context, ns, name string) (*corev1.Secret, error) {
	if m := s.secrets[name]; m != nil {
		return m, nil
	}
	return nil, &objects.Missing{Ref: objects.Ref{Kind: api.Secrets, Namespace: ns, Name: name}}
}

func (s *shelf) Field(pod *corev1.Pod, path string) (string, error) {
	return path + " of " + pod.Name, nil
}

func (s *shelf) Resource(_ *corev1.Pod, r *corev1.ResourceFieldSelector) (string, error) {
	return r.Resource, nil
}

func (s *shelf) Token(_ context.Context, pod *corev1.Pod, ask *corev1.ServiceAccountTokenProjection) (string, error) {
	if ask.Audience == "away" {
		return "", errors.New("no master can be reached")
	}
	if ask.Audience == "nobody" {
		return "", apierrors.NewNotFound(api.ServiceAccounts.GR(), "nobody")
	}
	return pod.Name + " for " + ask.Audience, nil
}

func newShelf() *shelf {
	return &shelf{
		maps:    map[string]*corev1.ConfigMap{"m": {Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"bin": {0}}}},
		secrets: map[string]*corev1.Secret{"s": {Data: map[string][]byte{"key": []byte("secret")}}},
	}
}

func configMap(name string, change ...func(*corev1.ConfigMapVolumeSource)) corev1.Volume {
	c := &corev1.ConfigMapVolumeSource{}
	c.Name = name
	for _, f := range change {
		f(c)
	}
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: c}}
}

func TestContent(t *testing.T) {
	yes, mode, other := true, int32(0o400), int32(0o600)
	items := func(c *corev1.ConfigMapVolumeSource) {
		c.Items = []corev1.KeyToPath{{Key: "a", Path: "deep/x"}, {Key: "b", Path: "y", Mode: &other}}
		c.DefaultMode = &mode
	}
	wrong := func(c *corev1.ConfigMapVolumeSource) { c.Items = []corev1.KeyToPath{{Key: "no", Path: "x"}} }
	optional := func(c *corev1.ConfigMapVolumeSource) { c.Optional = &yes }
	all := corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}, Items: []corev1.KeyToPath{{Key: "a", Path: "one"}}}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "two", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}, Mode: &other},
			{Path: "three", ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}}},
	}}}}
	for _, c := range []struct {
		name string
		v    corev1.Volume
		want string
	}{
		{"all keys", configMap("m"), "a=1 644;b=2 644;bin=\x00 644"},
		{"items and modes", configMap("m", items), "deep/x=1 400;y=2 600"},
		{"a missing key", configMap("m", wrong), "couldn't find key no in ConfigMap ns/m"},
		{"an optional key", configMap("m", wrong, optional), ""},
		{"a missing object", configMap("none"), `configmap "none" not found`},
		{"an optional object", configMap("none", optional), ""},
		{"a secret", corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: &mode}}}, "key=secret 400"},
		{"projected", all, "key=secret 400;one=1 400;three=limits.cpu 400;two=metadata.name of p 600"},
	} {
		pod := &corev1.Pod{}
		pod.Name, pod.Namespace = "p", "ns"
		got, err := contentOf(t.Context(), newShelf(), pod, &c.v)
		var lines []string
		for name, f := range got {
			lines = append(lines, name+"="+string(f.data)+" "+strings.TrimLeft(perm(f.mode), "0"))
		}
		slices.Sort(lines)
		s := strings.Join(lines, ";")
		if err != nil {
			s = err.Error()
			var missing *objects.Missing
			if !errors.As(err, &missing) {
				t.Errorf("%s: %T", c.name, err)
			}
		}
		if s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

func perm(m os.FileMode) string {
	p := int(m.Perm())
	return string([]byte{'0' + byte(p>>6), '0' + byte(p>>3&7), '0' + byte(p&7)})
}

// tree is what a container would read in dir.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			out = append(out, e.Name()+"/("+tree(t, path)+")")
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Name()+"="+string(data))
	}
	return strings.Join(out, " ")
}

func TestWriteReplacesAllAtOnce(t *testing.T) {
	dir := t.TempDir()
	f := func(s string) file { return file{[]byte(s), 0o644} }
	link := func() string { s, _ := os.Readlink(filepath.Join(dir, dataLink)); return s }
	put := func(p payload, want string) {
		t.Helper()
		if err := write(dir, p, -1); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, dir); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	put(payload{"a": f("1"), "d/x": f("2"), "d/e/y": f("3")}, "a=1 d/(e/(y=3) x=2)")
	before := link()
	put(payload{"a": f("1"), "d/x": f("2"), "d/e/y": f("3")}, "a=1 d/(e/(y=3) x=2)")
	if link() != before {
		t.Error("nothing has changed, and it was written again")
	}
	open, err := os.Open(filepath.Join(dir, dataLink))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	// What a crash may leave.
	for _, name := range []string{"..2001_01_01_00_00_00.1", "..2001_01_01_00_00_00.2"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, newLink)); err != nil {
		t.Fatal(err)
	}
	put(payload{"a": f("new"), "b": f("4")}, "a=new b=4")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 { // a, b, ..data and what it leads to
		t.Errorf("%v, %v", entries, err)
	}
	put(payload{}, "")
	if err := write(dir, payload{"../out": f("x")}, -1); err == nil {
		t.Error("a file outside was written")
	}
}

func TestProjectedVolumes(t *testing.T) {
	needRoot(t)
	from := newShelf()
	m := New(t.TempDir(), from)
	v := configMap("m")
	s := corev1.Volume{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: new(int32(0o400))}}}
	p := podWith(v, s)
	p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(2000))}
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/sub", SubPath: "a"})
	t.Cleanup(func() { _ = m.TearDown("u1") })
	if err := m.SetUp(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	mounts, err := m.Mounts(p, &p.Spec.Containers[0], same)
	if err != nil || len(mounts) != 3 {
		t.Fatal(mounts, err)
	}
	for _, mount := range mounts {
		if !mount.ReadOnly {
			t.Errorf("%s can be written to", mount.ContainerPath)
		}
	}
	secret := mounts[1].HostPath
	if mounted, err := isMounted(secret); err != nil || !mounted {
		t.Errorf("a secret lies on the disk: %v", err)
	}
	info, err := os.Stat(filepath.Join(secret, "key"))
	if err != nil || info.Mode().Perm() != 0o440 || info.Sys().(*syscall.Stat_t).Gid != 2000 {
		t.Errorf("%v, %v", info, err)
	}
	from.maps["m"] = &corev1.ConfigMap{Data: map[string]string{"a": "changed"}}
	if err := m.SetUp(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, mounts[0].HostPath); got != "a=changed" {
		t.Error(got)
	}
	if data, err := os.ReadFile(mounts[2].HostPath); err != nil || string(data) != "1" {
		t.Errorf("a subPath is to stay as it was: %q, %v", data, err)
	}
	if err := m.TearDown("u1"); err != nil {
		t.Fatal(err)
	}
}

// A token lies in memory beside the other files, and only the volume's group may read it, if it has one.
func TestTokenVolume(t *testing.T) {
	needRoot(t)
	for _, x := range []struct {
		name  string
		group *int64
		mode  os.FileMode
	}{{"no group", nil, 0o644}, {"a group", new(int64(2000)), 0o640}} {
		m := New(t.TempDir(), newShelf())
		token := &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "vault"}
		m1 := &corev1.ConfigMapProjection{Items: []corev1.KeyToPath{{Key: "a", Path: "a"}}}
		m1.Name = "m"
		p := podWith(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: token}, {ConfigMap: m1}}}}})
		p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: x.group}
		t.Cleanup(func() { _ = m.TearDown("u1") })
		if err := m.SetUp(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		mounts, err := m.Mounts(p, &p.Spec.Containers[0], same)
		if err != nil {
			t.Fatal(err)
		}
		dir := mounts[0].HostPath
		if got, want := tree(t, dir), "a=1 token="+p.Name+" for vault"; got != want {
			t.Errorf("%s: %s, want %s", x.name, got, want)
		}
		info, err := os.Stat(filepath.Join(dir, "token"))
		if err != nil || info.Mode().Perm() != x.mode {
			t.Errorf("%s: %v, %v", x.name, info.Mode(), err)
		}
		if mounted, err := isMounted(dir); err != nil || !mounted {
			t.Errorf("%s: a token lies on the disk: %v", x.name, err)
		}
		token.Audience = "away" // what was written before stays
		if err := m.SetUp(t.Context(), p); err != nil || tree(t, dir) != "a=1 token="+p.Name+" for vault" {
			t.Errorf("%s, while no master can be reached: %v, %s", x.name, err, tree(t, dir))
		}
		fresh := New(t.TempDir(), newShelf())
		if err := fresh.SetUp(t.Context(), p); err == nil {
			t.Errorf("%s: a volume that never was is made without a master", x.name)
		}
		token.Audience = "nobody"
		if err := m.SetUp(t.Context(), p); err == nil || !strings.Contains(err.Error(), "failed to fetch token: serviceaccounts \"nobody\" not found") {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}
