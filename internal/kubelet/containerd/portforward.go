package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// PortForward implements cri.Runtime.
func (r *Runtime) PortForward(ctx context.Context, podUID string, port int32) (io.ReadWriteCloser, error) {
	return r.dialIn(podUID, func() (net.Conn, error) { return dialLoopback(ctx, port) })
}

// Dial implements cri.Runtime.
func (r *Runtime) Dial(ctx context.Context, podUID, network, address string) (net.Conn, error) {
	return r.dialIn(podUID, func() (net.Conn, error) {
		var d net.Dialer // as in dialLoopback
		return d.DialContext(ctx, network, address)
	})
}

// dialIn dials in a pod's network. A socket stays in the namespace it was made in.
func (r *Runtime) dialIn(podUID string, dial func() (net.Conn, error)) (conn net.Conn, err error) {
	rec := r.records.get(podUID)
	if rec == nil || !rec.Whole {
		return nil, errors.New("containerd: the pod has no network")
	}
	if rec.Config.HostNetwork {
		return dial()
	}
	err = r.sandboxes.Enter(rec.Sandbox.ID, []string{"net"}, func() (err error) {
		conn, err = dial()
		return err
	})
	return conn, err
}

// dialLoopback connects to a port of this machine, on either kind of its loopback address. Each is a
// single address, which the dialer tries in the calling goroutine.
func dialLoopback(ctx context.Context, port int32) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err == nil {
		return conn, nil
	}
	if conn, err6 := d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(int(port)))); err6 == nil {
		return conn, nil
	}
	return nil, fmt.Errorf("failed to connect to localhost:%d inside the pod's network: %w", port, err)
}
