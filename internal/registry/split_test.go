package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
)

func gpuJob(password string) *minik8s.GpuJob {
	return &minik8s.GpuJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j"},
		Spec: minik8s.GpuJobSpec{RunScripts: []string{"./a"}, Username: "me", Password: password}}
}

var (
	jobKey   = client.Key{Kind: api.GpuJobs, Namespace: "default", Name: "j"}
	loginKey = client.Key{Kind: api.Secrets, Namespace: "default", Name: minik8s.LoginSecretOf("j")}
)

func passwordOf(t *testing.T, c client.Interface) string {
	t.Helper()
	s, err := client.Get[*corev1.Secret](t.Context(), c, loginKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(s.Data["password"])
}

func setPassword(t *testing.T, c client.Interface, password string) error {
	t.Helper()
	_, err := c.Patch(t.Context(), jobKey, client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"username":"me","password":"` + password + `"}}`)}, client.WriteOptions{})
	return err
}

// What happens to the second object between the moment that a write was made of it and the write is seen.
func TestKeptMeanwhile(t *testing.T) {
	s := &interrupted{Store: memory.New()}
	c := startOn(t, s)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	// Somebody takes its name: neither object is written.
	s.before = func([]store.Change) {
		_, err := c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: loginKey.Name}}, client.WriteOptions{})
		must(err)
	}
	if _, err := c.Create(t.Context(), gpuJob("one"), client.WriteOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "somebody else's") {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), jobKey); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	_, err := c.Delete(t.Context(), loginKey, nil)
	must(err)
	_, err = c.Create(t.Context(), gpuJob("one"), client.WriteOptions{})
	must(err)
	// Somebody changes it: what they changed stays, beside what is kept.
	s.before = func([]store.Change) {
		_, err := c.Patch(t.Context(), loginKey, client.Patch{Type: types.MergePatchType, Data: []byte(`{"metadata":{"labels":{"a":"b"}}}`)}, client.WriteOptions{})
		must(err)
	}
	must(setPassword(t, c, "two"))
	if secret, err := client.Get[*corev1.Secret](t.Context(), c, loginKey); err != nil || secret.Labels["a"] != "b" || string(secret.Data["password"]) != "two" {
		t.Errorf("%+v %v", secret, err)
	}
	// Somebody deletes it: it is made anew.
	s.before = func([]store.Change) {
		_, err := c.Delete(t.Context(), loginKey, nil)
		must(err)
	}
	must(setPassword(t, c, "three"))
	if got := passwordOf(t, c); got != "three" {
		t.Error(got)
	}
	// The job goes: nothing is left behind that is nobody's.
	_, err = c.Delete(t.Context(), loginKey, nil)
	must(err)
	s.before = func([]store.Change) {
		_, err := c.Delete(t.Context(), jobKey, nil)
		must(err)
	}
	if err := setPassword(t, c, "four"); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), loginKey); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	// The store takes neither.
	full := errors.New("the disk is gone")
	broken := &failing{Store: memory.New()}
	c = startOn(t, broken)
	broken.with = full
	if _, err := c.Create(t.Context(), gpuJob("five"), client.WriteOptions{}); err == nil || strings.Contains(err.Error(), "five") {
		t.Error(err)
	}
	broken.with = nil
	for _, key := range []client.Key{jobKey, loginKey} {
		if _, err := c.Get(t.Context(), key); !apierrors.IsNotFound(err) {
			t.Error(key, err)
		}
	}
}

// Three masters that write at once, each with another password: the last that was acknowledged is kept, whole.
func TestKeptOnThreeMasters(t *testing.T) {
	s := memory.New()
	var masters []client.Interface
	for range 3 {
		reg, stop := registrytest.Start(t, s)
		t.Cleanup(stop)
		masters = append(masters, local.New(reg, registry.System))
	}
	if _, err := masters[0].Create(t.Context(), gpuJob("first"), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for m, c := range masters {
		wg.Go(func() {
			for i := range 10 {
				if err := setPassword(t, c, fmt.Sprintf("m%d-%d", m, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := passwordOf(t, masters[0]); !strings.HasSuffix(got, "-9") {
		t.Errorf("a password that was replaced is kept: %s", got)
	}
	job, err := client.Get[*minik8s.GpuJob](t.Context(), masters[1], jobKey)
	if err != nil || job.Spec.Password != "" || job.Spec.LoginSecret != loginKey.Name {
		t.Errorf("%+v %v", job, err)
	}
}

// failing is a store that takes no writes for a while.
type failing struct {
	store.Store
	with error
}

func (s *failing) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	if s.with != nil {
		return 0, s.with
	}
	return s.Store.Write(ctx, changes...)
}
