package hosts

import (
	"context"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// Dial connects from the host.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	return h.dial(ctx, "tcp", address)
}

// Dial connects from the network itself, which is no host that a fault can befall.
func (l *Lab) Dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return l.hub.dial(ctx, &d, "tcp", address)
}

// dial connects from the host.
func (h *Host) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return h.ns.dial(ctx, &d, network, address)
}

// dial connects from the namespace, on a thread that ends with it: do would have all others wait.
func (n *namespace) dial(ctx context.Context, d *net.Dialer, network, address string) (c net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		if err = unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err == nil {
			c, err = d.DialContext(ctx, network, address)
		}
	}()
	<-done
	return c, err
}
