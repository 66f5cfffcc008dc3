package roles

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/informer"
	"minik8s/internal/kubelet/containerd"
	"minik8s/internal/network"
	"minik8s/internal/network/peers"
	"minik8s/internal/proxy"
	"minik8s/internal/supervise"
)

// workerParts are a worker's parts. containerd and the network need nothing from the master and start together with
// etcd. The network starts after containerd, which passes on to it the pods of an earlier run: so their addresses and
// host ports are in the rules from the start.
func (d *Daemon) workerParts() []supervise.Part {
	after := []string{"network", "credentials"}
	parts := d.settingsParts()
	for _, p := range parts {
		after = append(after, p.Name)
	}
	return append(parts, []supervise.Part{
		{Name: "containerd", Policy: supervise.Must, Run: d.runContainerd},
		{Name: "host-network", Policy: supervise.Must, Run: d.prepareNetwork},
		{Name: "network", Policy: supervise.Must, Run: d.runNetwork, After: []string{"containerd", "host-network"}},
		{Name: "nodes", Policy: supervise.Keep, Run: d.runNodes, After: after, Await: d.api(), Patience: patience},
		{Name: "proxy", Policy: supervise.Keep, Run: d.runProxy, After: after, Await: d.api(), Patience: patience},
		{Name: "policies", Policy: supervise.Keep, Run: d.runPolicies, After: after}, // waits for the API itself, and pods for it
		{Name: "dns", Policy: supervise.Keep, Run: d.runDNS, After: after, Await: d.api(), Patience: patience},
		{Name: "gateway", Policy: supervise.Keep, Run: d.runGateway, After: after, Await: d.api(), Patience: patience},
		{Name: "kubelet-server", Policy: supervise.Must, Run: d.runKubeletServer, After: []string{"containerd", "credentials"}},
		{Name: "kubelet", Policy: supervise.Keep, Run: d.runKubelet, After: append([]string{"policies"}, after...), Await: d.api(), Patience: patience},
		{Name: "announcements", Policy: supervise.Keep, Run: d.runAnnouncements, After: after, Await: d.api(), Patience: patience},
		{Name: "images", Policy: supervise.Keep, Run: d.runImages, After: after, Await: d.api(), Patience: patience},
	}...)
}

// patience is how long a master's kubelet waits for its own API, which there is not while a majority of the masters is
// away: then it goes on with the pods that it has written down, and asks other masters.
const patience = 5 * time.Second

func (d *Daemon) runContainerd(ctx context.Context, ready func()) error {
	rt, err := containerd.New(ctx, d.runtimeConfig())
	if err != nil {
		return err
	}
	d.runtime = rt
	ready()
	<-ctx.Done()
	return rt.Close()
}

// networkConfig is the configuration of the pods' network, both for the daemon and for clean.
func (d *Daemon) networkConfig() network.Config {
	return network.Config{PodCIDR: d.likelyRange(), Owner: d.cfg.DataDir, NoPods: !d.cfg.Has(config.Worker), NodePorts: []uint16{uint16(d.cfg.APIPort)},
		NodeIP: d.cfg.NodeIP, Direct: d.cfg.PodNetwork == config.Direct, VXLANPort: uint16(d.cfg.VXLANPort),
		StateFile: d.path("network.json"), Unwatched: proxy.Tables, Log: d.log}
}

// likelyRange is the range of pod addresses that this node probably gets, so that the network need not wait for the
// Node: what it asks for, or on a first master the first.
func (d *Daemon) likelyRange() netip.Prefix {
	switch {
	case d.cfg.PodCIDR.IsValid():
		return d.cfg.PodCIDR
	case d.cfg.Has(config.Master) && !d.joins():
		return netip.PrefixFrom(d.cfg.ClusterCIDR.Addr(), max(config.NodeBits, d.cfg.ClusterCIDR.Bits()))
	}
	return netip.Prefix{}
}

// runtimeConfig is the configuration of the runtime, both for the daemon and for clean.
func (d *Daemon) runtimeConfig() containerd.Config {
	warm := 1
	if !d.cfg.Does(config.Warm) {
		warm = -1
	}
	return containerd.Config{
		DataDir: d.cfg.DataDir, Socket: d.cfg.Containerd, NodeName: d.cfg.NodeName, Network: d.network,
		CgroupRoot: d.cfg.CgroupRoot, LogMaxSize: d.cfg.ContainerLogSize, LogMaxFiles: d.cfg.ContainerLogFiles,
		InsecureRegistries: d.cfg.InsecureRegistries, Registries: d.imageRegistries(), Warm: warm, Work: d.work, Log: d.log,
	}
}

// prepareNetwork does what the network need not wait for containerd with.
func (d *Daemon) prepareNetwork(ctx context.Context, ready func()) error {
	if err := d.network.Prepare(ctx); err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	return nil
}

func (d *Daemon) runNetwork(ctx context.Context, ready func()) error {
	if err := d.network.Setup(ctx); err != nil {
		return err
	}
	d.runtime.NetworkChanged(ctx)
	ready()
	d.network.Keep(ctx)
	return nil
}

// runNodes tells the network of the other nodes, and the balancer of the masters. Both follow the Peers by
// one watch. It is ready when the network has been told.
func (d *Daemon) runNodes(ctx context.Context, ready func()) error {
	machines := informer.New[*minik8s.Peer](d.asNode(), api.Peers, informer.Options{Views: d.nodeViews(), Log: d.log})
	routes := peers.New(machines, d.cfg.NodeName, d.network, d.log)
	ctx, stop := context.WithCancel(ctx)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer stop()
	followers.Go(func() { routes.Run(ctx, ready) })
	upstreams := d.newOthers(machines)
	followers.Go(func() { upstreams.Run(ctx) })
	return machines.Run(ctx, func() {})
}

// hostNetwork implements node.Network: the Node's view of the pods' network, on a machine without pods.
type hostNetwork struct{ *network.Network }

// Trouble names what in the host's packet filter stops pods' traffic, and what stops a part of it.
func (n hostNetwork) Trouble() (stopped, partly []string) {
	t := n.Network.Trouble()
	return t.Stopped, t.Partly
}

// nodeNetwork is the same with pods.
type nodeNetwork struct {
	hostNetwork
	runtime *containerd.Runtime
}

// SetPodCIDR makes pods get their addresses from the Node's range, and has the runtime renew what it made for another
// one, pods too.
func (n nodeNetwork) SetPodCIDR(ctx context.Context, prefix netip.Prefix) error {
	before := n.PodCIDR()
	if err := n.Network.SetPodCIDR(ctx, prefix); err != nil {
		return err
	}
	if n.PodCIDR() != before {
		n.runtime.NetworkChanged(ctx)
	}
	n.runtime.RangeGiven(n.PodCIDR())
	return nil
}

// runImages imports the archives in the data directory, once.
func (d *Daemon) runImages(ctx context.Context, ready func()) error {
	ready()
	if _, err := d.runtime.ImportDir(ctx, d.path("images")); err != nil {
		d.log.Warn("an archive could not be imported", "error", err)
	}
	d.imagesChanged()
	<-ctx.Done()
	return nil
}

// imagesChanged makes the kubelet, if it runs yet, retry for pods that wait for an image.
func (d *Daemon) imagesChanged() {
	if k := d.kubelet.Load(); k != nil {
		k.ImagesChanged()
	}
}

// nodeLabels are the configured labels and, on a master, the role's.
func (d *Daemon) nodeLabels() map[string]string {
	out := map[string]string{}
	if d.cfg.Has(config.Master) {
		out[api.ControlPlane] = ""
	}
	for k, v := range d.cfg.NodeLabels {
		out[k] = v
	}
	return out
}
