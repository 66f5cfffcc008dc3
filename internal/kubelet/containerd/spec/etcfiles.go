package spec

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/resolvconf"
)

// EtcFiles are the pod's hosts, hostname and resolv.conf. For a pod on the host's network, or without a DNS
// configuration, they are the node's own.
func EtcFiles(cfg cri.SandboxConfig, addr netip.Addr) (map[string][]byte, error) {
	hosts := podHosts(cfg, addr)
	if cfg.HostNetwork {
		node, err := os.ReadFile("/etc/hosts")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		hosts = hostNetworkHosts(node, cfg.HostAliases)
	}
	resolv := resolvConf(cfg.DNS)
	if resolv == nil {
		var err error
		if resolv, err = resolvconf.Node(); err != nil {
			return nil, err
		}
	}
	return map[string][]byte{"hosts": hosts, "hostname": []byte(cfg.Hostname + "\n"), "resolv.conf": resolv}, nil
}

// podHosts is /etc/hosts of a pod with its own network, the way Kubernetes writes it.
func podHosts(cfg cri.SandboxConfig, addr netip.Addr) []byte {
	var b bytes.Buffer
	b.WriteString("# Kubernetes-managed hosts file.\n")
	b.WriteString("127.0.0.1\tlocalhost\n")
	b.WriteString("::1\tlocalhost ip6-localhost ip6-loopback\n")
	b.WriteString("fe00::0\tip6-localnet\n")
	b.WriteString("fe00::0\tip6-mcastprefix\n")
	b.WriteString("fe00::1\tip6-allnodes\n")
	b.WriteString("fe00::2\tip6-allrouters\n")
	if addr.IsValid() && cfg.Hostname != "" {
		if cfg.Domain != "" { // a host name that is the pod's full name has it already
			short := strings.TrimSuffix(cfg.Hostname, "."+cfg.Domain)
			fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", addr, short, cfg.Domain, short)
		} else {
			fmt.Fprintf(&b, "%s\t%s\n", addr, cfg.Hostname)
		}
	}
	writeAliases(&b, cfg.HostAliases)
	return b.Bytes()
}

// hostNetworkHosts is the node's own file with the pod's aliases.
func hostNetworkHosts(node []byte, aliases []cri.HostAlias) []byte {
	var b bytes.Buffer
	b.WriteString("# Kubernetes-managed hosts file (host network).\n")
	b.Write(node)
	writeAliases(&b, aliases)
	return b.Bytes()
}

func writeAliases(b *bytes.Buffer, aliases []cri.HostAlias) {
	if len(aliases) == 0 {
		return
	}
	b.WriteString("\n# Entries added by HostAliases.\n")
	for _, a := range aliases {
		fmt.Fprintf(b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
	}
}

// resolvConf is the resolv.conf with these settings; nil if there are none.
func resolvConf(dns cri.DNS) []byte {
	var b bytes.Buffer
	if len(dns.Searches) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(dns.Searches, " "))
	}
	for _, s := range dns.Servers {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	if len(dns.Options) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(dns.Options, " "))
	}
	return b.Bytes()
}
