package roles

import (
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
)

func goarch() string    { return runtime.GOARCH }
func goVersion() string { return runtime.Version() }

// nodeIP is the source address of this machine's connections to a server, a URL, or without one to the world: that of
// the default route's link. Without a route it is the first address that is not a loopback address.
func nodeIP(server string) netip.Addr {
	if a := routedIP(server); a.IsValid() {
		return a
	}
	links, err := net.Interfaces()
	if err != nil {
		links = nil
	}
	for _, link := range links {
		if link.Flags&net.FlagLoopback != 0 { // its addresses are where this machine answers itself
			continue
		}
		addrs, err := link.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
				ip, _ := netip.AddrFromSlice(n.IP.To4())
				return ip
			}
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// routedIP is the source address of this machine's connections to a server, a URL, or without one to the world; invalid: no
// route leads there. No packet is sent.
func routedIP(server string) netip.Addr {
	peers := []string{"192.0.2.1"}
	if u, err := url.Parse(server); err == nil && u.Hostname() != "" {
		peers = []string{u.Hostname(), peers[0]}
	}
	for _, peer := range peers {
		c, err := net.Dial("udp4", net.JoinHostPort(peer, "9"))
		if err != nil {
			continue
		}
		defer c.Close() //nolint:errcheck // nothing was sent
		if a, ok := c.LocalAddr().(*net.UDPAddr); ok && !a.IP.IsLoopback() {
			return a.AddrPort().Addr().Unmap()
		}
	}
	return netip.Addr{}
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

// nodeAddresses are the addresses under which this machine's kubelet is reached.
func (d *Daemon) nodeAddresses() []netip.Addr { return []netip.Addr{d.cfg.NodeIP} }
