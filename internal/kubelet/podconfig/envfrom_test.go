package podconfig

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/events"
	"minik8s/internal/kubelet/objects"
	"minik8s/internal/kubelet/plan/plantest"
)

// oneSecret is an API with one Secret, of which Events are kept.
type oneSecret struct {
	client.Interface
	secret *corev1.Secret
	told   chan *corev1.Event
}

type stream chan client.Event

func (s stream) Events() <-chan client.Event { return s }
func (s stream) Err() error                  { return nil }
func (s stream) Stop()                       {}

func (c *oneSecret) Watch(ctx context.Context, _ *api.Kind, _ client.WatchOptions) (client.Watcher, error) {
	s := make(stream, 2)
	s <- client.Event{Type: client.Added, Object: c.secret}
	s <- client.Event{Type: client.Bookmark, InitialEnd: true}
	context.AfterFunc(ctx, func() { close(s) })
	return s, nil
}

func (c *oneSecret) Create(_ context.Context, obj api.Object, _ client.WriteOptions) (api.Object, error) {
	c.told <- obj.(*corev1.Event)
	return obj, nil
}

// A key that can be no variable, which the API would not let in today, is left out and told.
func TestEnvFromSkipsInvalidNames(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &oneSecret{told: make(chan *corev1.Event, 1), secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"},
		Data: map[string][]byte{"x": []byte("1"), "y=z": []byte("2")}}}
	log := slog.New(slog.DiscardHandler)
	done := make(chan struct{}, 2)
	start := func(f func()) {
		go func() { f(); done <- struct{}{} }()
	}
	rec := events.New(c, "kubelet", "node1", log)
	start(func() { rec.Run(ctx) })
	b := &Builder{Objects: objects.New(c, log, start, func(types.UID) {}), Events: rec}
	pod := plantest.Pod("web")
	pod.UID = "u1"
	b.Objects.Use(ctx, pod.UID, []objects.Ref{{Kind: api.Secrets, Namespace: "default", Name: "s"}})
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{Prefix: "P_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
	env, err := b.environment(ctx, pod, &pod.Spec.Containers[0], nil)
	if err != nil || len(env) != 1 || env[0].Name != "P_x" || env[0].Value != "1" {
		t.Errorf("%v, %v", env, err)
	}
	if ev := <-c.told; ev.Reason != "InvalidEnvironmentVariableNames" || !strings.Contains(ev.Message, "[P_y=z]") {
		t.Errorf("%s: %s", ev.Reason, ev.Message)
	}
	cancel()
	<-done
	<-done
}
