package informer_test

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/client/local"
	"minik8s/internal/informer"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// In spite of dropped calls and broken watches an informer ends up with exactly what is stored, and its handlers have
// seen a consistent history: nothing added twice, nothing changed that did not exist.
func TestConvergesThroughFaults(t *testing.T) {
	for seed := range int64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
			defer cancel()
			good := local.New(registrytest.New(t), registry.System)
			bad := faulty.New(good, faulty.Rates{Drop: 0.2, Break: 0.1, Delay: 0.2, MaxDelay: time.Millisecond}, seed)
			inf := informer.New[*corev1.ConfigMap](bad, api.ConfigMaps, informer.Options{})
			var mu sync.Mutex
			view, changed := map[string]string{}, make(chan struct{}, 1)
			inf.OnChange(func(old, now *corev1.ConfigMap) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case old == nil:
					if _, ok := view[now.Name]; ok {
						t.Errorf("%s was added twice", now.Name)
					}
				case view[old.Name] != old.ResourceVersion && now != nil:
					t.Errorf("%s changed from %s, seen was %s", old.Name, old.ResourceVersion, view[old.Name])
				}
				if now != nil {
					view[now.Name] = now.ResourceVersion
				} else {
					delete(view, old.Name)
				}
				select {
				case changed <- struct{}{}:
				default:
				}
			})
			done := make(chan struct{})
			go func() { defer close(done); inf.Run(ctx, func() {}) }() //nolint:errcheck // it ends with ctx
			mix(t, ctx, good, seed)
			bad.Heal()
			final, _, err := client.All[*corev1.ConfigMap](ctx, good, api.ConfigMaps, client.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			equal := func() bool {
				mu.Lock()
				defer mu.Unlock()
				if len(view) != len(final) || inf.Len() != len(final) {
					return false
				}
				for _, cm := range final {
					if view[cm.Name] != cm.ResourceVersion {
						return false
					}
				}
				return true
			}
			for !equal() {
				select {
				case <-changed:
				case <-ctx.Done():
					t.Fatalf("the informer has %v", view)
				}
			}
			cancel()
			<-done
		})
	}
}

// mix makes random changes.
func mix(t *testing.T, ctx context.Context, c client.Interface, seed int64) {
	rng := rand.New(rand.NewSource(seed))
	for i := range 400 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("n", rng.Intn(12))},
			Data: map[string]string{"i": fmt.Sprint(i)}}
		var err error
		switch rng.Intn(4) {
		case 0:
			_, err = c.Create(ctx, cm, client.WriteOptions{})
		case 1:
			_, err = c.Delete(ctx, client.KeyOf(cm), nil)
		default:
			_, err = c.Update(ctx, cm, client.WriteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}
