package containerd

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/resolvconf"
)

// writeEtcFiles writes the pod's hosts, hostname and resolv.conf to dir, a scratch directory.
func writeEtcFiles(dir string, cfg cri.SandboxConfig, addr netip.Addr) error {
	hosts := podHosts(cfg, addr)
	if cfg.HostNetwork {
		node, err := os.ReadFile("/etc/hosts")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("containerd: %w", err)
		}
		hosts = hostNetworkHosts(node, cfg.HostAliases)
	}
	resolv := resolvConf(cfg.DNS)
	if resolv == nil {
		var err error
		if resolv, err = resolvconf.Node(); err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
	}
	files := map[string][]byte{"hosts": hosts, "hostname": []byte(cfg.Hostname + "\n"), "resolv.conf": resolv}
	size := 0
	for _, data := range files {
		size += len(data)
	}
	if err := growScratch(dir, size); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
	}
	return nil
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
		if cfg.Domain != "" { // which a host name as the pod's full name has already
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

// resolvConf is the file that says this; nil if there is nothing to say.
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
