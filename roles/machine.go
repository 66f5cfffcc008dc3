package roles

import (
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"strings"
)

func goarch() string    { return runtime.GOARCH }
func goVersion() string { return runtime.Version() }

// nodeIP is the source address of this machine's connections to others: that of the default route's link. No packet
// is sent. Without a default route it is the first address that is not a loopback address.
func nodeIP() netip.Addr {
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		defer c.Close() //nolint:errcheck // nothing was sent
		if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
			return a.AddrPort().Addr().Unmap()
		}
	}
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
				ip, _ := netip.AddrFromSlice(n.IP.To4())
				return ip
			}
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// containerdVersion is the version of the embedded containerd, from the build's module list.
func containerdVersion() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, m := range b.Deps {
			if m.Path == "github.com/containerd/containerd" {
				return strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return "unknown"
}
