package hosts_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// A master saves its store by itself, and what somebody has deleted by mistake comes back from the last copy. Copies are root's
// alone, and old ones go.
func TestRestoreOfASavedCopy(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	prepared(t, lab, "host m1\nstart m1 --snapshot-interval=300ms --snapshot-keep=2\n")
	m1 := lab.Host("m1")
	c, err := m1.API()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		t.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if _, err := c.Create(t.Context(), cm, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	copies := func() []string {
		files, err := filepath.Glob(filepath.Join(m1.Dir(), "snapshots", "*"))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(files)
		return files
	}
	var last string // of the copies so far
	saved := func() {
		t.Helper()
		eventually(t, "a new copy", func() bool {
			all := copies()
			return len(all) > 0 && all[len(all)-1] > last
		})
		all := copies()
		last = all[len(all)-1]
	}
	saved()
	for _, name := range []string{"one", "kept", "after"} { // a copy may have begun before what was written when it is seen
		write(name)
		saved()
	}
	if all := copies(); len(all) > 3 { // two, and one that is being written
		t.Errorf("old copies stay: %v", all)
	}
	if st, err := os.Stat(last); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("who may read a copy: %v, %v", st, err)
	}
	dir := t.TempDir() // or the next copies push it out
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	apart := filepath.Join(dir, "copy")
	if err := os.WriteFile(apart, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(t.Context(), client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: "kept"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := m1.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if out, err := m1.Ctl("etcd", "restore", apart, "--force"); err != nil {
		t.Fatal(out, err)
	}
	if err := m1.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what was deleted is back", func() bool {
		_, err := c.Get(t.Context(), client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: "kept"})
		return err == nil
	})
}
