// Package critest is the contract of cri.Runtime as tests. Each implementation runs them: kubelet/containerd on real
// containers, cri/fake in memory.
package critest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"minik8s/internal/kubelet/cri"
)

// Harness is a runtime with nothing in it yet, and what is needed to use it.
type Harness struct {
	Runtime cri.Runtime
	// Sandbox is the configuration of an ordinary pod of this name; its uid is made from the name.
	Sandbox func(name string) cri.SandboxConfig
	// Container is that of a container of the pod that runs until its stop signal, and then stops at once, from an
	// image that is present.
	Container func(pod, name string) cri.ContainerConfig
	// ShortImage and FullImage name an image that is present, without and with registry and tag.
	ShortImage, FullImage string
	// Restart ends the runtime as a kill -9 of the daemon does and returns its successor.
	Restart func(t *testing.T) cri.Runtime
}

// patience bounds the wait for what a runtime does asynchronously.
const patience = 30 * time.Second

// grace is short, because a container may get its stop signal before it handles signals.
const grace = time.Second

// Run runs the contract. makeHarness is called for each part of it, and cleans up by t.Cleanup.
func Run(t *testing.T, makeHarness func(t *testing.T) *Harness) {
	for _, part := range []struct {
		name string
		test func(*testing.T, *Harness)
	}{
		{"WhatIsNotThere", whatIsNotThere},
		{"Sandbox", sandbox},
		{"Life", life},
		{"Attempts", attempts},
		{"RemovalOfARunningContainer", removalOfARunning},
		{"SideBySide", sideBySide},
		{"Restart", restart},
		{"Images", images},
		{"EventsEnd", eventsEnd},
		{"Streams", streams},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, makeHarness(t)) })
	}
}

func whatIsNotThere(t *testing.T, h *Harness) {
	ctx, r := t.Context(), h.Runtime
	pods, err := r.Pods(ctx)
	if err != nil || len(pods) != 0 {
		t.Errorf("Pods: %v, %v; want none", pods, err)
	}
	p, err := r.Pod(ctx, "nobody")
	if err != nil || p.Sandbox != nil || len(p.Containers) != 0 {
		t.Errorf("Pod: %+v, %v; want an empty one", p, err)
	}
	for what, err := range map[string]error{
		"RemoveSandbox":   r.RemoveSandbox(ctx, "nobody"),
		"RemoveContainer": r.RemoveContainer(ctx, "nothing"),
		"StopContainer":   r.StopContainer(ctx, "nothing", time.Second),
	} {
		if err != nil {
			t.Errorf("%s of what is not there: %v; want no error", what, err)
		}
	}
	if err := r.StartContainer(ctx, "nothing"); err == nil {
		t.Error("StartContainer of what is not there succeeded")
	}
	if _, err := r.CreateContainer(ctx, h.Container("nobody", "c")); err == nil {
		t.Error("CreateContainer without a sandbox succeeded")
	}
}

func sandbox(t *testing.T, h *Harness) {
	ctx, r := t.Context(), h.Runtime
	a := ensure(t, r, h.Sandbox("a"))
	if !a.Whole || len(a.Addresses) == 0 || a.PodName != "a" || a.CreatedAt.IsZero() {
		t.Errorf("a new sandbox is %+v", a)
	}
	again := ensure(t, r, h.Sandbox("a"))
	if again.Addresses[0] != a.Addresses[0] || !again.CreatedAt.Equal(a.CreatedAt) {
		t.Errorf("the second EnsureSandbox gave %+v, the first %+v", again, a)
	}
	b := ensure(t, r, h.Sandbox("b"))
	if b.Addresses[0] == a.Addresses[0] {
		t.Errorf("two pods have %s", a.Addresses[0])
	}
	hostCfg := h.Sandbox("host")
	hostCfg.HostNetwork = true
	if host := ensure(t, r, hostCfg); !host.HostNetwork || !host.Whole {
		t.Errorf("a sandbox of the host's network is %+v", host)
	}
	for range 2 {
		if err := r.RemoveSandbox(ctx, h.Sandbox("a").PodUID); err != nil {
			t.Fatal(err)
		}
	}
	if p := get(t, r, h.Sandbox("a").PodUID); p.Sandbox != nil {
		t.Errorf("a removed sandbox is still reported: %+v", p.Sandbox)
	}
}

func life(t *testing.T, h *Harness) {
	ctx, r := t.Context(), h.Runtime
	events := r.Events(ctx)
	uid := h.Sandbox("a").PodUID
	ensure(t, r, h.Sandbox("a"))
	cfg := h.Container("a", "c")
	cfg.Labels = map[string]string{"k": "v"}
	missing := cfg
	missing.Image = "minik8s/there-is-no-such:image"
	if _, err := r.CreateContainer(ctx, missing); !errors.Is(err, cri.ErrImageNotFound) {
		t.Errorf("CreateContainer of a missing image: %v; want ErrImageNotFound", err)
	}
	id, err := r.CreateContainer(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := only(t, r, uid)
	if c.ID != id || c.Name != "c" || c.State != cri.Created || c.CreatedAt.IsZero() || c.Labels["k"] != "v" || c.LogPath != cfg.LogPath {
		t.Errorf("a created container is %+v", c)
	}
	for range 2 {
		if err := r.StartContainer(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	awaitEvent(t, events, id)
	if c := only(t, r, uid); c.State != cri.Running || c.StartedAt.IsZero() {
		t.Errorf("a started container is %+v", c)
	}
	for range 2 {
		if err := r.StopContainer(ctx, id, grace); err != nil {
			t.Fatal(err)
		}
	}
	awaitEvent(t, events, id)
	c = only(t, r, uid)
	if c.State != cri.Exited || c.FinishedAt.Before(c.StartedAt) {
		t.Errorf("a stopped container is %+v", c)
	}
	for range 2 {
		if err := r.RemoveContainer(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if p := get(t, r, uid); len(p.Containers) != 0 {
		t.Errorf("a removed container is still reported: %+v", p.Containers)
	}
}

func attempts(t *testing.T, h *Harness) {
	ctx, r := t.Context(), h.Runtime
	uid := h.Sandbox("a").PodUID
	ensure(t, r, h.Sandbox("a"))
	for n := range 3 {
		cfg := h.Container("a", "c")
		cfg.Attempt = n
		id := start(t, r, cfg)
		if err := r.StopContainer(ctx, id, grace); err != nil {
			t.Fatal(err)
		}
	}
	p := get(t, r, uid)
	seen := map[int]bool{}
	for _, c := range p.Containers {
		seen[c.Attempt] = true
	}
	if len(p.Containers) != 3 || len(seen) != 3 {
		t.Errorf("three attempts are reported as %+v", p.Containers)
	}
}

func removalOfARunning(t *testing.T, h *Harness) {
	ctx, r := t.Context(), h.Runtime
	ensure(t, r, h.Sandbox("a"))
	id := start(t, r, h.Container("a", "c"))
	if err := r.RemoveContainer(ctx, id); err != nil {
		t.Fatal(err)
	}
	if p := get(t, r, h.Sandbox("a").PodUID); len(p.Containers) != 0 {
		t.Errorf("still there: %+v", p.Containers)
	}
}

// sideBySide works on several pods at once: none may see another's address or container.
func sideBySide(t *testing.T, h *Harness) {
	ctx, r := t.Context(), h.Runtime
	const n = 8
	addrs := make([]netip.Addr, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name := fmt.Sprintf("p%d", i)
			s, err := r.EnsureSandbox(ctx, h.Sandbox(name))
			if err != nil {
				t.Error(err)
				return
			}
			addrs[i] = s.Addresses[0]
			id, err := r.CreateContainer(ctx, h.Container(name, "c"))
			if err == nil {
				err = r.StartContainer(ctx, id)
			}
			if err == nil {
				err = r.StopContainer(ctx, id, grace)
			}
			if err == nil {
				err = r.RemoveContainer(ctx, id)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[netip.Addr]bool{}
	for _, a := range addrs {
		if seen[a] {
			t.Errorf("%s was given twice", a)
		}
		seen[a] = true
	}
}

func restart(t *testing.T, h *Harness) {
	if h.Restart == nil {
		t.Skip("this runtime cannot be restarted")
	}
	ctx, r := t.Context(), h.Runtime
	uid := h.Sandbox("a").PodUID
	before := ensure(t, r, h.Sandbox("a"))
	cfg := h.Container("a", "c")
	cfg.Attempt = 4
	id := start(t, r, cfg)
	other := start(t, r, h.Container("a", "d"))
	if err := r.StopContainer(ctx, other, grace); err != nil {
		t.Fatal(err)
	}
	ended := byID(t, r, uid, other)

	r = h.Restart(t)
	p := get(t, r, uid)
	if p.Sandbox == nil || !p.Sandbox.Whole || p.Sandbox.Addresses[0] != before.Addresses[0] {
		t.Fatalf("after a restart the sandbox is %+v, before %+v", p.Sandbox, before)
	}
	c := byID(t, r, uid, id)
	if c.State != cri.Running || c.Attempt != 4 || c.Name != "c" {
		t.Errorf("after a restart the running container is %+v", c)
	}
	if got := byID(t, r, uid, other); got.State != cri.Exited || got.ExitCode != ended.ExitCode || !got.FinishedAt.Equal(ended.FinishedAt) {
		t.Errorf("after a restart the ended container is %+v, before %+v", got, ended)
	}
	if again := ensure(t, r, h.Sandbox("a")); again.Addresses[0] != before.Addresses[0] {
		t.Errorf("after a restart the address is %s, before %s", again.Addresses[0], before.Addresses[0])
	}
	events := r.Events(ctx)
	if err := r.StopContainer(ctx, id, grace); err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, events, id)
	if fresh := ensure(t, r, h.Sandbox("b")); fresh.Addresses[0] == before.Addresses[0] {
		t.Errorf("after a restart %s was given a second time", fresh.Addresses[0])
	}
}

func images(t *testing.T, h *Harness) {
	ctx, r := t.Context(), h.Runtime
	short, err := r.ImageStatus(ctx, h.ShortImage)
	if err != nil || short == nil {
		t.Fatalf("ImageStatus(%q): %v, %v", h.ShortImage, short, err)
	}
	full, err := r.ImageStatus(ctx, h.FullImage)
	if err != nil || full == nil || full.ID != short.ID {
		t.Errorf("%q is %+v (%v), %q is %+v", h.FullImage, full, err, h.ShortImage, short)
	}
	if img, err := r.ImageStatus(ctx, "minik8s/there-is-no-such:image"); img != nil || err != nil {
		t.Errorf("ImageStatus of a missing image: %+v, %v; want nil, nil", img, err)
	}
	if _, err := r.ImageStatus(ctx, "NOT A NAME"); !errors.Is(err, cri.ErrInvalidImageName) {
		t.Errorf("ImageStatus of nonsense: %v; want ErrInvalidImageName", err)
	}
	if err := r.RemoveImage(ctx, h.FullImage); err != nil {
		t.Fatal(err)
	}
	if img, err := r.ImageStatus(ctx, h.ShortImage); img != nil || err != nil {
		t.Errorf("ImageStatus of a removed image: %+v, %v", img, err)
	}
	if err := r.RemoveImage(ctx, h.FullImage); err != nil {
		t.Errorf("the second RemoveImage: %v", err)
	}
}

func eventsEnd(t *testing.T, h *Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	events := h.Runtime.Events(ctx)
	cancel()
	timeout := time.After(patience)
	for {
		select {
		case _, open := <-events:
			if !open {
				return
			}
		case <-timeout:
			t.Fatal("the channel did not close")
		}
	}
}

func ensure(t *testing.T, r cri.Runtime, cfg cri.SandboxConfig) cri.Sandbox {
	t.Helper()
	s, err := r.EnsureSandbox(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t *testing.T, r cri.Runtime, cfg cri.ContainerConfig) string {
	t.Helper()
	id, err := r.CreateContainer(t.Context(), cfg)
	if err == nil {
		err = r.StartContainer(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func get(t *testing.T, r cri.Runtime, uid string) cri.Pod {
	t.Helper()
	p, err := r.Pod(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func only(t *testing.T, r cri.Runtime, uid string) cri.Container {
	t.Helper()
	p := get(t, r, uid)
	if len(p.Containers) != 1 {
		t.Fatalf("%d containers, want one: %+v", len(p.Containers), p.Containers)
	}
	return p.Containers[0]
}

func byID(t *testing.T, r cri.Runtime, uid, id string) cri.Container {
	t.Helper()
	for _, c := range get(t, r, uid).Containers {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("container %s is not reported", id)
	return cri.Container{}
}

func awaitEvent(t *testing.T, events <-chan cri.Event, id string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e := <-events:
			if e.ContainerID == id || e.PodUID == "" {
				return
			}
		case <-timeout:
			t.Fatalf("no event of container %s", id)
		}
	}
}
