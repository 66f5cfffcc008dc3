package roles

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/dns"
	"minik8s/internal/informer"
	"minik8s/internal/proxy"
	"minik8s/internal/proxy/plan"
	"minik8s/internal/registry/strategy"
)

// nodeViews are what the parts of this machine that read as its node share: each kind is held once.
func (d *Daemon) nodeViews() *informer.Views {
	d.makeViews.Do(func() { d.views = informer.NewViews(d.asNode(), d.log) })
	return d.views
}

// servicesTable is the name of the packet filter's table for Services.
func (d *Daemon) servicesTable() string { return proxy.Tables + d.network.Owner() }

// runProxy keeps the data path of Services on this machine.
func (d *Daemon) runProxy(ctx context.Context, ready func()) error {
	opts := informer.Options{Views: d.nodeViews(), Log: d.log}
	own := opts
	own.Fields = fields.OneTermEqualSelector("metadata.name", d.cfg.NodeName)
	nodes := informer.New[*corev1.Node](d.asNode(), api.Nodes, own)
	changed := nodes.Signal(func(old, now *corev1.Node) bool {
		return old == nil || now == nil || old.Labels[corev1.LabelTopologyZone] != now.Labels[corev1.LabelTopologyZone] ||
			!slices.Equal(old.Status.Addresses, now.Status.Addresses) || old.Spec.PodCIDR != now.Spec.PodCIDR
	})
	services := informer.New[*corev1.Service](d.asNode(), api.Services, opts)
	served := services.Signal(func(old, now *corev1.Service) bool { return dns.Address(old) != dns.Address(now) })
	machines := informer.New[*minik8s.Peer](d.asNode(), api.Peers, opts)
	moved := machines.Signal(func(old, now *minik8s.Peer) bool {
		return old == nil || now == nil || !slices.Equal(old.Spec.Addresses, now.Spec.Addresses)
	})
	names := informer.New[*minik8s.DNS](d.asNode(), api.DNSes, opts)
	addressed := names.Signal(addressChanged)
	p := proxy.New(proxy.Config{Table: d.servicesTable(), Links: d.network.LinkPrefix(), Node: d.proxyNode(nil, nil, nil), Pods: d.network.PodCIDR(), Ruleset: d.filter, Log: d.log},
		services, informer.New[*discoveryv1.EndpointSlice](d.asNode(), api.EndpointSlices, opts))
	d.proxy.Store(p)
	defer d.proxy.Store(nil)
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { nodes.Run(ctx, func() {}) })    //nolint:errcheck // it ends with ctx
	beside.Go(func() { names.Run(ctx, func() {}) })    //nolint:errcheck // as above
	beside.Go(func() { machines.Run(ctx, func() {}) }) //nolint:errcheck // as above
	beside.Go(func() {
		for {
			select {
			case <-changed:
			case <-moved:
			case <-served:
			case <-addressed:
			case <-ctx.Done():
				return
			}
			if node, ok := nodes.Get("", d.cfg.NodeName); ok {
				pods, err := netip.ParsePrefix(node.Spec.PodCIDR)
				if err != nil {
					pods = d.network.PodCIDR()
				}
				served := addressesOf(names.List())
				if svc, ok := services.Get(metav1.NamespaceSystem, api.DNSService); ok && dns.Address(svc).IsValid() {
					served = append(served, dns.Address(svc))
				}
				p.SetNode(d.proxyNode(node, machines.List(), served), pods)
			}
		}
	})
	return p.Run(ctx, ready)
}

// proxyNode is this machine as Services see it, which itself answers at the addresses served, among all machines. node may
// not be known yet.
func (d *Daemon) proxyNode(node *corev1.Node, machines []*minik8s.Peer, served []netip.Addr) (out plan.Node) {
	out = plan.Node{Name: d.cfg.NodeName, Served: served, Addresses: []netip.Addr{d.cfg.NodeIP}}
	defer func() { out.Kept = d.keptPorts(addressesOfMachines(out.Addresses, machines)) }()
	if node == nil {
		return out
	}
	out.Zone = node.Labels[corev1.LabelTopologyZone]
	for _, a := range node.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil && !slices.Contains(out.Addresses, addr) {
			out.Addresses = append(out.Addresses, addr)
		}
	}
	return out
}

// machinePorts are the ports that every machine has for itself, as far as this one's settings say.
func (d *Daemon) machinePorts() []strategy.MachinePort {
	return []strategy.MachinePort{
		{Protocol: corev1.ProtocolTCP, Port: d.cfg.APIPort, Of: "the API"},
		{Protocol: corev1.ProtocolTCP, Port: d.cfg.KubeletPort, Of: "the kubelet"},
		{Protocol: corev1.ProtocolTCP, Port: d.cfg.EtcdPort, Of: "etcd"},
		{Protocol: corev1.ProtocolUDP, Port: d.cfg.VXLANPort, Of: "the pods' network"},
		{Protocol: corev1.ProtocolTCP, Port: 22, Of: "ssh"},
	}
}

// gatewayPorts are those at which every machine answers for Ingresses, as long as there are some. A load balancer on the
// machines' own addresses would take them from it.
var gatewayPorts = []strategy.MachinePort{
	{Protocol: corev1.ProtocolTCP, Port: 80, Of: "the Ingresses that there are", While: api.Ingresses},
	{Protocol: corev1.ProtocolTCP, Port: 443, Of: "the Ingresses that there are", While: api.Ingresses},
}

// addressesOfMachines are own and those of the other machines, in order and each once.
func addressesOfMachines(own []netip.Addr, machines []*minik8s.Peer) []netip.Addr {
	out := slices.Clone(own)
	for _, m := range machines {
		for _, text := range m.Spec.Addresses {
			if a, err := netip.ParseAddr(text); err == nil {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// keptPorts are the addresses and ports that no Service takes: those that every machine has for itself, and the masters'
// APIs. A Service with another machine's address as an external one would else lead this machine's kubelet astray.
func (d *Daemon) keptPorts(machines []netip.Addr) (out []netip.AddrPort) {
	for _, p := range d.machinePorts() {
		for _, a := range machines {
			out = append(out, netip.AddrPortFrom(a, uint16(p.Port)))
		}
	}
	masters := append(d.balancer.Upstreams(), addressIn(d.cfg.Server))
	for _, m := range masters {
		if at, err := netip.ParseAddrPort(m); err == nil {
			out = append(out, at)
		}
	}
	return out
}
