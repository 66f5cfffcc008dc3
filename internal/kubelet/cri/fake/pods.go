package fake

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"minik8s/internal/kubelet/cri"
)

// EnsureSandbox makes the sandbox, or finds it.
func (r *Runtime) EnsureSandbox(ctx context.Context, cfg cri.SandboxConfig) (cri.Sandbox, error) {
	if err := r.before(ctx, "EnsureSandbox", cfg.PodUID, ""); err != nil {
		return cri.Sandbox{}, err
	}
	r.mu.Lock()
	p := r.pods[cfg.PodUID]
	if p == nil {
		p = &pod{}
		r.pods[cfg.PodUID] = p
	}
	if p.sandbox == nil {
		p.sandbox = &cri.Sandbox{PodUID: cfg.PodUID, PodNamespace: cfg.PodNamespace, PodName: cfg.PodName,
			CreatedAt: r.Now(), HostNetwork: cfg.HostNetwork, Addresses: []netip.Addr{r.address(cfg.HostNetwork)}}
	}
	if !p.sandbox.Whole {
		r.next++
		p.sandbox.ID, p.sandbox.CreatedAt = fmt.Sprintf("s%d", r.next), r.Now()
	}
	p.sandbox.Whole, p.cfg = true, cfg
	s := *p.sandbox
	r.mu.Unlock()
	return s, r.after(ctx, "EnsureSandbox", cfg.PodUID, "")
}

func (r *Runtime) address(host bool) netip.Addr {
	if host {
		return r.HostIP
	}
	if n := len(r.free); n > 0 {
		a := r.free[n-1]
		r.free = r.free[:n-1]
		return a
	}
	r.ip = r.ip.Next()
	return r.ip
}

// RemoveSandbox removes it.
func (r *Runtime) RemoveSandbox(ctx context.Context, uid string) error {
	if err := r.before(ctx, "RemoveSandbox", uid, ""); err != nil {
		return err
	}
	r.mu.Lock()
	if p := r.pods[uid]; p != nil {
		if len(p.containers) > 0 {
			r.violate("sandbox of %s removed with %d containers in it", uid, len(p.containers))
		}
		if p.sandbox != nil && !p.sandbox.HostNetwork {
			r.free = append(r.free, p.sandbox.Addresses...)
		}
		delete(r.pods, uid)
	}
	r.mu.Unlock()
	return r.after(ctx, "RemoveSandbox", uid, "")
}

// CreateContainer makes a container that does not run yet.
func (r *Runtime) CreateContainer(ctx context.Context, cfg cri.ContainerConfig) (string, error) {
	if err := r.before(ctx, "CreateContainer", cfg.PodUID, cfg.Name); err != nil {
		return "", err
	}
	id, err := r.create(cfg)
	if err != nil {
		return "", err
	}
	return id, r.after(ctx, "CreateContainer", cfg.PodUID, cfg.Name)
}

func (r *Runtime) create(cfg cri.ContainerConfig) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[cfg.PodUID]
	if p == nil || p.sandbox == nil || !p.sandbox.Whole {
		if p == nil || p.sandbox == nil { // nil: lost meanwhile
			r.violate("container %s of %s created without a sandbox", cfg.Name, cfg.PodUID)
		}
		return "", fmt.Errorf("pod %s has no sandbox", cfg.PodUID)
	}
	if _, ok := r.images[full(cfg.Image)]; !ok && !r.Any {
		r.violate("container %s of %s created without its image", cfg.Name, cfg.PodUID)
		return "", fmt.Errorf("%w: %s", cri.ErrImageNotFound, cfg.Image)
	}
	for _, id := range p.containers {
		c := r.containers[id]
		if c.Name == cfg.Name && c.Attempt == cfg.Attempt {
			if c.State == cri.Created {
				return id, nil
			}
			r.violate("container %s of %s created twice as attempt %d", cfg.Name, cfg.PodUID, cfg.Attempt)
			return "", fmt.Errorf("container %s, attempt %d, exists", cfg.Name, cfg.Attempt)
		}
	}
	r.next++
	id := fmt.Sprintf("c%d", r.next)
	r.containers[id] = &container{cfg: cfg, done: make(chan struct{}), Container: cri.Container{
		ID: id, PodUID: cfg.PodUID, SandboxID: p.sandbox.ID, Name: cfg.Name, Attempt: cfg.Attempt, CreatedAt: r.Now(), Image: cfg.Image,
		ImageID: r.images[full(cfg.Image)].ID, LogPath: cfg.LogPath, Labels: cfg.Labels}}
	p.containers = append(p.containers, id)
	return id, nil
}

func (r *Runtime) named(id string) (uid, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c.PodUID, c.Name
	}
	return "", ""
}

// StartContainer makes a created container run.
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	uid, name := r.named(id)
	if err := r.before(ctx, "StartContainer", uid, name); err != nil {
		if failed, ok := err.(*cri.StartError); ok {
			r.mu.Lock()
			if c := r.containers[id]; c != nil && c.State == cri.Created {
				c.StartError = failed.Message
				r.exit(c, failed.ExitCode, false)
			}
			r.mu.Unlock()
		}
		return err
	}
	if err := r.start(id); err != nil {
		return err
	}
	return r.after(ctx, "StartContainer", uid, name)
}

func (r *Runtime) start(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return fmt.Errorf("no container %s", id)
	}
	if c.State != cri.Created {
		return nil
	}
	if p := r.pods[c.PodUID]; p == nil || p.sandbox == nil || !p.sandbox.Whole {
		return fmt.Errorf("the namespaces of pod %s are lost", c.PodUID)
	}
	for _, o := range r.containers {
		if o.PodUID == c.PodUID && o.Name == c.Name && o.State == cri.Running {
			r.violate("container %s of %s started while attempt %d runs", c.Name, c.PodUID, o.Attempt)
		}
	}
	c.State, c.StartedAt, c.Pid = cri.Running, r.Now(), uint32(1000+r.next)
	r.broadcast(cri.Event{PodUID: c.PodUID, ContainerID: id})
	return nil
}

// StopContainer ends a running container: with 0 at once, or after Hooks.StopTime; with 137 if that
// is longer than grace.
func (r *Runtime) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	uid, name := r.named(id)
	if err := r.before(ctx, "StopContainer", uid, name); err != nil {
		return err
	}
	r.mu.Lock()
	c := r.containers[id]
	if c == nil || c.State != cri.Running {
		r.mu.Unlock()
		return nil
	}
	took := time.Duration(0)
	if r.Hooks.StopTime != nil {
		took = r.Hooks.StopTime(c.Container)
	}
	if took == 0 {
		r.exit(c, 0, false)
		r.mu.Unlock()
		return r.after(ctx, "StopContainer", uid, name)
	}
	r.mu.Unlock()
	timer := time.NewTimer(min(took, grace))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	if c.State == cri.Running {
		code := int32(0)
		if took > grace {
			code = 137
		}
		r.exit(c, code, false)
	}
	r.mu.Unlock()
	return r.after(ctx, "StopContainer", uid, name)
}

// RemoveContainer removes a container.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	uid, name := r.named(id)
	if err := r.before(ctx, "RemoveContainer", uid, name); err != nil {
		return err
	}
	r.mu.Lock()
	if c := r.containers[id]; c != nil {
		if c.State == cri.Running {
			r.exit(c, 137, false)
		}
		delete(r.containers, id)
		if p := r.pods[c.PodUID]; p != nil {
			p.containers = slices.DeleteFunc(p.containers, func(o string) bool { return o == id })
		}
	}
	r.mu.Unlock()
	return r.after(ctx, "RemoveContainer", uid, name)
}
