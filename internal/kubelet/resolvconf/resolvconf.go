package resolvconf

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"

	"minik8s/internal/hostdns"
	"minik8s/internal/kubelet/cri"
)

// Node returns the node's file, or, if that names only resolvers on loopback, which a pod cannot reach, the one that
// systemd-resolved itself uses. It is empty, without an error, if there is no file.
func Node() ([]byte, error) {
	return read("/etc/resolv.conf", hostdns.Uplinks)
}

func read(path string, behind func() ([]byte, error)) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return []byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	data = hostdns.Rest(data) // the node's own, whoever the host asks first
	servers := Parse(data).Servers
	reachable := func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err != nil || !a.IsLoopback()
	}
	if len(servers) > 0 && !slices.ContainsFunc(servers, reachable) {
		if upstream, err := behind(); err == nil {
			return upstream, nil
		}
	}
	return data, nil
}

// Parse reads what a file says.
func Parse(text []byte) cri.DNS {
	var dns cri.DNS
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			dns.Servers = append(dns.Servers, fields[1])
		case "search", "domain":
			dns.Searches = fields[1:]
		case "options":
			dns.Options = append(dns.Options, fields[1:]...)
		}
	}
	return dns
}
