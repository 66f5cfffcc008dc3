package hosts

import (
	"context"
	"net"
)

// Listen listens on the host.
func (h *Host) Listen(address string) (l net.Listener, err error) {
	err = h.ns.do(func() error {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

// Dial connects from the host.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	return h.dial(ctx, "tcp", address)
}
