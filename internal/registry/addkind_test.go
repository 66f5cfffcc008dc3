package registry_test

import (
	"fmt"
	"math/rand"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store/memory"
)

// A kind that is added while another master writes objects of it is whole: nothing is missed between the list and
// the watch, and nothing that was deleted comes back.
func TestAddKindWhileItIsWritten(t *testing.T) {
	for seed := range int64(20) {
		s := memory.New()
		first, stop := registrytest.Start(t, s)
		second, stopSecond := registrytest.Start(t, s)
		if err := first.AddKind(t.Context(), registrytest.Gadgets, &registry.Strategy{}); err != nil {
			t.Fatal(err)
		}
		writer := local.New(first, registry.System)
		rng := rand.New(rand.NewSource(seed))
		begun := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 200 {
				name := fmt.Sprint("g", rng.Intn(20))
				at := client.Key{Kind: registrytest.Gadgets, Namespace: "default", Name: name}
				if _, err := writer.Create(t.Context(), &registrytest.Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, client.WriteOptions{}); err != nil {
					writer.Delete(t.Context(), at, nil) //nolint:errcheck // it is there, or comes again
				}
				if i == 50 {
					close(begun)
				}
			}
		})
		<-begun
		if err := second.AddKind(t.Context(), registrytest.Gadgets, &registry.Strategy{}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		list := func(reg *registry.Registry) map[string]string {
			l, err := local.New(reg, registry.System).List(t.Context(), registrytest.Gadgets, client.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out := map[string]string{}
			for _, obj := range l.Items {
				out[obj.GetName()] = obj.(api.Object).GetResourceVersion()
			}
			return out
		}
		if a, b := fmt.Sprint(list(first)), fmt.Sprint(list(second)); a != b {
			t.Fatalf("seed %d: one has %s, the other %s", seed, a, b)
		}
		stopSecond()
		stop()
	}
}
