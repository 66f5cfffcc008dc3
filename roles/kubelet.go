package roles

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"minik8s/config"
	"minik8s/internal/apiserver/nodes"
	"minik8s/internal/kubelet"
	"minik8s/internal/kubelet/server"
	"minik8s/internal/kubelet/shutdown"
	"minik8s/internal/logind"
)

func (d *Daemon) runKubelet(ctx context.Context, ready func()) error {
	info := VersionInfo()
	k := kubelet.New(kubelet.Config{
		NodeName: d.cfg.NodeName, NodeIP: d.cfg.NodeIP, Port: int32(d.kubeletPort), DataDir: d.cfg.DataDir, CgroupRoot: d.cfg.CgroupRoot,
		PodCIDR: d.cfg.PodCIDR, MaxPods: d.cfg.MaxPods, PodPidsLimit: int64(d.cfg.PodPidsLimit), ClusterDNS: d.cfg.ClusterDNS, ClusterDomain: d.cfg.ClusterDomain,
		RandomHostPorts: d.cfg.RandomHostPorts, RegistryAuthFile: d.cfg.RegistryAuthFile, Version: info.GitVersion,
		RuntimeVersion: containerdVersion(), Labels: d.nodeLabels(), APIAddress: d.announcedAPI(),
		Checkpoints: true, Views: d.nodeViews(), Unavailable: d.avoidMaster, Heard: d.heard.tell, Networks: networks(),
		Network: nodeNetwork{hostNetwork{d.network}, d.runtime}, HeartbeatInterval: d.cfg.HeartbeatInterval,
		Shutdown: d.shutdownConfig(), Policies: podPolicies{d}, Work: d.work, Log: d.log,
	}, d.asNode(), d.runtime)
	defer d.kubelet.Store(nil)
	return k.Run(ctx, func() {
		d.kubelet.Store(k)
		ready()
	})
}

// shutdownConfig is how pods end before the machine shuts down, which systemd-logind says.
func (d *Daemon) shutdownConfig() shutdown.Config {
	return shutdown.Config{Periods: shutdown.Periods{All: d.cfg.ShutdownGracePeriod, Critical: d.cfg.ShutdownGracePeriodCriticalPods}, Log: d.log,
		Open: func(ctx context.Context) (shutdown.Conn, error) { return logind.Open(ctx, owner(d.cfg)) }}
}

// owner is in the names of files that a daemon makes outside of its data directory.
func owner(cfg *config.Config) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(cfg.DataDir)))[:8]
}

// kubeletAddress is where the kubelet's server listens; empty: on all addresses.
func (d *Daemon) kubeletAddress() string {
	if d.cfg.KubeletAddress != "" {
		return d.cfg.KubeletAddress
	}
	return d.cfg.APIAddress
}

// runKubeletServer serves for as long as the daemon runs; the kubelet may be started again meanwhile.
func (d *Daemon) runKubeletServer(ctx context.Context, ready func()) error {
	s := server.New(server.Config{NodeName: d.cfg.NodeName, Runtime: d.runtime, CgroupRoot: d.cfg.CgroupRoot, DataDir: d.cfg.DataDir, ImagesChanged: d.imagesChanged,
		Pods: func() server.Pods {
			if k := d.kubelet.Load(); k != nil {
				return k
			}
			return nil
		},
		ClusterDomain: d.cfg.ClusterDomain,
		Services: func() server.Services {
			if p := d.proxy.Load(); p != nil {
				return p
			}
			return nil
		},
		Version: VersionInfo().GitVersion, Cert: d.creds.kubelet, ClientCA: d.creds.trust, Log: d.log})
	ready()
	return s.Serve(ctx, d.kubeletListener)
}

// kubelets reaches every kubelet over HTTPS, also this machine's. That one is reached even when the machine's address
// has changed.
func (d *Daemon) kubelets() http.RoundTripper {
	find := nodes.ByNode(d.reg)
	return nodes.Kubelets(func(ctx context.Context, node string) (string, error) {
		if node == d.cfg.NodeName && d.cfg.Has(config.Worker) {
			address := d.kubeletAddress()
			if address == "" {
				address = loopback
			}
			return net.JoinHostPort(address, strconv.Itoa(d.kubeletPort)), nil
		}
		return find(ctx, node)
	}, d.creds.kubelets, d.creds.trust)
}
