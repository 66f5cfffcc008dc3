package masters

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/informer"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// node is a Node that says where its API is, and with the label if it is a master's.
func node(name, address string, master bool) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}}
	if master {
		n.Labels[api.ControlPlane] = ""
	}
	if address != "" {
		n.Annotations[api.APIAddressAnnotation] = address
	}
	return n
}

// asPeers is how the machines of the cluster see the Nodes.
func asPeers(nodes ...*corev1.Node) (out []*minik8s.Peer) {
	for _, n := range nodes {
		out = append(out, api.Peers.View.Shown(n).(*minik8s.Peer))
	}
	return out
}

func TestOf(t *testing.T) {
	ending := node("ending", "10.0.0.9:6443", true)
	ending.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	got := Of(asPeers(node("m2", "10.0.0.2:6443", true), node("m1", "10.0.0.1:7443", true), node("twin", "10.0.0.1:7443", true),
		node("m6", "[fd00::1]:6443", true), node("worker", "", false), node("liar", "10.0.0.66:6443", false), node("hidden", "", true),
		node("odd", "everywhere", true), node("odder", "10.0.0.3:0", true), node("oddest", ":6443", true), ending))
	if want := "10.0.0.1:7443 10.0.0.2:6443 [fd00::1]:6443"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// A master that is alone again has no others.
func TestLastMaster(t *testing.T) {
	reg := registrytest.New(t)
	admin := local.New(reg, registry.System)
	for _, n := range []*corev1.Node{node("m1", "10.0.0.1:6443", true), node("m2", "10.0.0.2:6443", true)} {
		if _, err := admin.Create(t.Context(), n, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	book, err := Open(filepath.Join(t.TempDir(), "masters.json"))
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan []string, 100)
	nodes := informer.New[*minik8s.Peer](admin, api.Peers, informer.Options{})
	f := New(book, nodes, "10.0.0.1:6443", func(list []string) { told <- list }, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { f.Run(ctx) })
	running.Go(func() { nodes.Run(ctx, func() {}) }) //nolint:errcheck // it ends with ctx
	if list := <-told; !slices.Equal(list, []string{"10.0.0.2:6443"}) {
		t.Error(list)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.Nodes, Name: "m2"}, nil); err != nil {
		t.Fatal(err)
	}
	if list := <-told; len(list) != 0 || len(book.Masters()) != 0 {
		t.Error(list, book.Masters())
	}
}

// Whoever follows is told each change of the masters and no other, and what it was told is remembered.
func TestFollow(t *testing.T) {
	reg := registrytest.New(t)
	admin := local.New(reg, registry.System)
	put := func(n *corev1.Node) {
		t.Helper()
		if _, err := admin.Create(t.Context(), n, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(name, data string) {
		t.Helper()
		p := client.Patch{Type: types.MergePatchType, Data: []byte(data)}
		if _, err := admin.Patch(t.Context(), client.Key{Kind: api.Nodes, Name: name}, p, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		t.Helper()
		if _, err := admin.Delete(t.Context(), client.Key{Kind: api.Nodes, Name: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "masters.json")
	book, err := Open(path)
	if err != nil || len(book.Masters()) != 0 {
		t.Fatal(book, err)
	}
	told := make(chan []string, 100)
	nodes := informer.New[*minik8s.Peer](local.New(reg, registry.NodeUser("w1")), api.Peers, informer.Options{})
	f := New(book, nodes, "", func(list []string) { told <- list }, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { f.Run(ctx) })
	running.Go(func() {
		if err := nodes.Run(ctx, func() {}); err != nil {
			t.Error(err)
		}
	})
	expect := func(want ...string) {
		t.Helper()
		select {
		case got := <-told:
			if !slices.Equal(got, want) {
				t.Errorf("told %v, want %v", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("not told of %v", want)
		}
		again, err := Open(path)
		if err != nil || !slices.Equal(again.Masters(), want) {
			t.Errorf("remembered %v, %v; want %v", again.Masters(), err, want)
		}
	}
	put(node("m1", "10.0.0.1:6443", true))
	expect("10.0.0.1:6443")
	put(node("w1", "10.0.0.66:6443", false)) // a worker that would like to be one
	patch("m1", `{"metadata":{"labels":{"x":"y"}}}`)
	put(node("m2", "10.0.0.2:6443", true))
	expect("10.0.0.1:6443", "10.0.0.2:6443")
	patch("m1", `{"metadata":{"annotations":{"minik8s.io/api-address":"10.0.0.11:6443"}}}`)
	expect("10.0.0.11:6443", "10.0.0.2:6443")
	patch("m2", `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":null}}}`)
	expect("10.0.0.11:6443")
	remove("m1") // nobody is left: the last one stays
	put(node("m3", "10.0.0.3:6443", true))
	expect("10.0.0.3:6443")
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st, err)
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "masters.json")
	for text, want := range map[string]string{"": "is damaged", "[]": "is damaged", `{"masters":["x"]}`: "", `{}`: ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := Open(path)
		if want == "" && (err != nil || len(b.Masters()) != 0) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "remove it")) {
			t.Errorf("%q: %v, %v", text, b, err)
		}
	}
	if _, err := Open(filepath.Join(path, "x")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
