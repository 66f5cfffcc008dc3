package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"minik8s/internal/kubelet/cri"
)

// Exec runs Hooks.Exec as the process; without it every command succeeds in silence.
func (r *Runtime) Exec(ctx context.Context, id string, cfg cri.ExecConfig) (int32, error) {
	c, done, err := r.running(id)
	if err != nil {
		return 0, err
	}
	if r.Hooks.Exec == nil {
		return 0, ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return r.Hooks.Exec(whileRunning(ctx, done), c, cfg)
}

// Attach runs Hooks.Attach as the container's streams; without it the container is silent.
func (r *Runtime) Attach(ctx context.Context, id string, cfg cri.AttachConfig) error {
	c, done, err := r.running(id)
	if err != nil {
		return err
	}
	if r.Hooks.Attach != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return r.Hooks.Attach(whileRunning(ctx, done), c, cfg)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PortForward calls Hooks.PortForward; without it no port is open.
func (r *Runtime) PortForward(ctx context.Context, podUID string, port int32) (io.ReadWriteCloser, error) {
	r.mu.Lock()
	p := r.pods[podUID]
	r.mu.Unlock()
	if p == nil || p.sandbox == nil {
		return nil, errors.New("the pod has no network")
	}
	if r.Hooks.PortForward == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	return r.Hooks.PortForward(ctx, podUID, port)
}

// Dial dials from here; the fake's pods have no network of their own.
func (r *Runtime) Dial(ctx context.Context, podUID, network, address string) (net.Conn, error) {
	r.mu.Lock()
	p := r.pods[podUID]
	r.mu.Unlock()
	if p == nil || p.sandbox == nil {
		return nil, errors.New("the pod has no network")
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

func (r *Runtime) running(id string) (cri.Container, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return cri.Container{}, nil, fmt.Errorf("no container %s", id)
	}
	if c.State != cri.Running {
		return cri.Container{}, nil, cri.ErrNotRunning
	}
	return c.Container, c.done, nil
}

// whileRunning ends with ctx and with the container.
func whileRunning(ctx context.Context, done <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-done:
		case <-ctx.Done():
		}
	}()
	return ctx
}
