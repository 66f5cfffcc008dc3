package kubelet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

func execHook(command string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{command}}}
}

func hooks(postStart, preStop *corev1.LifecycleHandler) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: postStart, PreStop: preStop}
	}
}

func TestPostStartHoldsTheContainerBack(t *testing.T) {
	b := newBed(t)
	begun, finish := make(chan struct{}), make(chan error)
	b.rt.Hooks.Exec = func(ctx context.Context, _ cri.Container, cfg cri.ExecConfig) (int32, error) {
		begun <- struct{}{}
		select {
		case err := <-finish:
			if err != nil {
				fmt.Fprint(cfg.Stdout, err)
				return 1, nil
			}
			return 0, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	b.start()
	b.create(plantest.Pod("web", hooks(execHook("hello"), nil)))
	<-begun
	p := b.api.await(t, "web", "held back", func(p *corev1.Pod) bool { return p != nil && p.Status.PodIP != "" })
	if running(p) {
		t.Errorf("%s", statusText(p))
	}
	finish <- errors.New("not today")
	if msg := b.api.awaitEvent(t, "web", "FailedPostStartHook"); !strings.Contains(msg, "not today") {
		t.Error(msg)
	}
	<-begun // of the second attempt
	finish <- nil
	p = b.api.await(t, "web", "running", running)
	if p.Status.ContainerStatuses[0].RestartCount != 1 {
		t.Errorf("%s", statusText(p))
	}
	b.create(plantest.Pod("going", hooks(execHook("hello"), nil)))
	<-begun
	b.delete("going") // the hook is not waited for
	b.api.await(t, "going", "gone", goneNow)
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

func TestPreStopComesFirstAndOnce(t *testing.T) {
	b := newBed(t)
	var mu sync.Mutex
	var seen []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
	}
	b.rt.Hooks.Exec = func(_ context.Context, c cri.Container, cfg cri.ExecConfig) (int32, error) {
		note(cfg.Command[0] + " in " + c.Name)
		return 1, nil // that it fails changes nothing
	}
	tries := 0
	b.rt.Hooks.Before = func(_ context.Context, call, _, name string) error {
		if call == "StopContainer" {
			note("stop " + name)
			if tries++; tries == 1 {
				return errors.New("not yet")
			}
		}
		return nil
	}
	b.start()
	b.create(plantest.Pod("web", hooks(nil, execHook("bye"))))
	b.api.await(t, "web", "running", running)
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.api.awaitEvent(t, "web", "FailedPreStopHook")
	if got := strings.Join(seen, ", "); got != "bye in web, stop web, stop web" {
		t.Error(got)
	}
	b.nothingLeft()
}
