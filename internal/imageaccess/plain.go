package imageaccess

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Plain reports whether the registry at host, HOST or HOST:PORT, is spoken with by plain HTTP: it is on loopback, or insecure has it,
// with its port or for all ports.
func Plain(host string, insecure []string) bool {
	if slices.Contains(insecure, host) {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if name == "localhost" || slices.Contains(insecure, name) {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && a.IsLoopback()
}
