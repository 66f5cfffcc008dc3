package hosts

import (
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

// Packets listens for UDP on the host.
func (h *Host) Packets(address string) (c net.PacketConn, err error) {
	err = h.ns.do(func() error {
		c, err = net.ListenPacket("udp", address)
		return err
	})
	return c, err
}
