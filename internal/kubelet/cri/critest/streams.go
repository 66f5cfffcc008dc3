package critest

import (
	"context"
	"errors"
	"testing"

	"minik8s/internal/kubelet/cri"
)

// streams is what exec, attach and port-forward do in the cases that need no particular program.
func streams(t *testing.T, h *Harness) {
	ctx, r := t.Context(), h.Runtime
	if _, err := r.Exec(ctx, "nothing", cri.ExecConfig{Command: []string{"true"}}); err == nil {
		t.Error("Exec in what is not there succeeded")
	}
	if err := r.Attach(ctx, "nothing", cri.AttachConfig{}); err == nil {
		t.Error("Attach to what is not there succeeded")
	}
	if _, err := r.PortForward(ctx, "nobody", 80); err == nil {
		t.Error("PortForward into what is not there succeeded")
	}
	ensure(t, r, h.Sandbox("a"))
	if _, err := r.Dial(ctx, "nobody", "tcp", "127.0.0.1:80"); err == nil {
		t.Error("Dial from what is not there succeeded")
	}
	if _, err := r.Dial(ctx, h.Sandbox("a").PodUID, "tcp", "127.0.0.1:81"); err == nil {
		t.Error("Dial to a port where nobody listens succeeded")
	}
	if _, err := r.PortForward(ctx, h.Sandbox("a").PodUID, 81); err == nil {
		t.Error("PortForward to a port where nobody listens succeeded")
	}
	id, err := r.CreateContainer(ctx, h.Container("a", "c"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(when string) {
		t.Helper()
		if _, err := r.Exec(ctx, id, cri.ExecConfig{Command: []string{"true"}}); !errors.Is(err, cri.ErrNotRunning) {
			t.Errorf("Exec %s: %v; want ErrNotRunning", when, err)
		}
		if err := r.Attach(ctx, id, cri.AttachConfig{}); !errors.Is(err, cri.ErrNotRunning) {
			t.Errorf("Attach %s: %v; want ErrNotRunning", when, err)
		}
	}
	refused("before the start")
	if err := r.StartContainer(ctx, id); err != nil {
		t.Fatal(err)
	}
	if code, err := r.Exec(ctx, id, cri.ExecConfig{Command: []string{"true"}}); code != 0 || err != nil {
		t.Errorf("Exec of true: %d, %v", code, err)
	}
	cut, cancel := context.WithCancel(ctx)
	cancel()
	if err := r.Attach(cut, id, cri.AttachConfig{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Attach whose context has ended: %v", err)
	}
	attached := make(chan error, 1)
	go func() { attached <- r.Attach(ctx, id, cri.AttachConfig{}) }()
	if err := r.StopContainer(ctx, id, grace); err != nil {
		t.Fatal(err)
	}
	// It had begun before the container ended, or not.
	if err := <-attached; err != nil && !errors.Is(err, cri.ErrNotRunning) {
		t.Errorf("Attach until the container ended: %v", err)
	}
	refused("after the end")
}
