package checkpoint

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func pod(uid string, generation int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p-" + uid, UID: types.UID(uid), Generation: generation},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

func loaded(s *Store) map[types.UID]int64 {
	out := map[types.UID]int64{}
	for _, p := range s.Load() {
		out[p.UID] = p.Generation
	}
	return out
}

// What was put last is there after a restart, what was dropped is not, and damage costs only the damaged.
func TestKeptOverARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	run := func(do func(s *Store)) {
		s := New(dir, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { s.Run(ctx); close(ended) }()
		do(s)
		cancel()
		<-ended
	}
	run(func(s *Store) {
		s.Put(pod("a", 1))
		s.Put(pod("b", 1))
		s.Put(pod("a", 2))
		s.Put(pod("c", 1))
		s.Drop("c")
		s.Drop("never")
	})
	s := New(dir, slog.New(slog.DiscardHandler))
	if got := loaded(s); len(got) != 2 || got["a"] != 2 || got["b"] != 1 {
		t.Fatalf("%v", got)
	}
	if p := s.Load()[0]; p.Spec.Containers[0].Image != "i" || p.Name == "" {
		t.Errorf("%+v", p)
	}
	st, err := os.Stat(filepath.Join(dir, "a.json"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st, err)
	}
	for name, text := range map[string]string{"d.json": "{", "e.json": `{"metadata":{"uid":"a"}}`, "f.json~": "{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := loaded(s); len(got) != 2 {
		t.Errorf("with damaged files: %v", got)
	}
	run(func(s *Store) { s.Keep(map[types.UID]bool{"b": true}) })
	if got := loaded(s); len(got) != 1 || got["b"] != 1 {
		t.Errorf("%v", got)
	}
}
