package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
)

// overtaken is a store in which something happens after a listing was made and before it is handed over.
type overtaken struct {
	store.Store
	by func(prefix string)
}

func (s *overtaken) List(ctx context.Context, prefix, after string, limit, revision int64) (store.Page, error) {
	page, err := s.Store.List(ctx, prefix, after, limit, revision)
	if s.by != nil {
		s.by(prefix)
	}
	return page, err
}

// A kind that is added while another master writes objects of it is whole: nothing is missed between the list and
// the watch, and nothing that was deleted comes back.
func TestAddKindWhileItIsWritten(t *testing.T) {
	kept := memory.New()
	first, stop := registrytest.Start(t, kept)
	defer stop()
	s := &overtaken{Store: kept}
	second, stop := registrytest.Start(t, s)
	defer stop()
	if err := first.AddKind(t.Context(), registrytest.Gadgets, &registry.Strategy{}); err != nil {
		t.Fatal(err)
	}
	writer := local.New(first, registry.System)
	create := func(name string) {
		t.Helper()
		if _, err := writer.Create(t.Context(), &registrytest.Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		t.Helper()
		if _, err := writer.Delete(t.Context(), client.Key{Kind: registrytest.Gadgets, Namespace: "default", Name: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	create("stays")
	create("goes")
	create("made-anew")
	s.by = func(prefix string) {
		if !strings.Contains(prefix, "gadgets") {
			return
		}
		s.by = nil
		remove("goes")
		remove("made-anew")
		create("made-anew")
		create("comes")
		rev, err := kept.Revision(t.Context())
		if err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(10 * time.Second); second.Revision() < rev; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Error("the watch does not go on while a kind is listed")
				return
			}
		}
	}
	if err := second.AddKind(t.Context(), registrytest.Gadgets, &registry.Strategy{}); err != nil {
		t.Fatal(err)
	}
	list := func(reg *registry.Registry) (out []string) {
		l, err := local.New(reg, registry.System).List(t.Context(), registrytest.Gadgets, client.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range l.Items {
			out = append(out, obj.GetName()+" "+obj.GetResourceVersion())
		}
		return out
	}
	if a, b := fmt.Sprint(list(first)), fmt.Sprint(list(second)); a != b || !strings.Contains(a, "comes") {
		t.Fatalf("one has %s, the other %s", a, b)
	}
}
