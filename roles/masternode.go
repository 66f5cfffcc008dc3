package roles

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/clock"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/kubelet/node"
	"minik8s/internal/supervise"
)

// masterNodeParts are the parts of a master that is no worker. Its host reaches the pods of the workers, as every host
// does: who asks this master for a pod's port is sent there. It is a master all the same where that fails.
func (d *Daemon) masterNodeParts() []supervise.Part {
	parts := []supervise.Part{{Name: "node", Policy: supervise.Keep, Run: d.runNode, After: d.api()}}
	if d.network == nil {
		d.log.Info("this host does not reach pods: that needs the right to change its network")
		return append(parts, supervise.Part{Name: "nodes", Policy: supervise.Keep, Run: d.runMasters, After: d.api()})
	}
	return append(parts,
		supervise.Part{Name: "network", Policy: supervise.Keep, Run: d.runHostNetwork},
		supervise.Part{Name: "nodes", Policy: supervise.Keep, Run: d.runNodes, After: append(d.api(), "network")},
		supervise.Part{Name: "proxy", Policy: supervise.Keep, Run: d.runHostProxy, After: append(d.api(), "network")})
}

// hasNetwork reports whether this machine takes part in the pods' network. A worker must.
func (d *Daemon) hasNetwork() bool { return d.cfg.Has(config.Worker) || mayChangeNetwork() }

// mayChangeNetwork reports whether this process has CAP_NET_ADMIN.
func mayChangeNetwork() bool {
	var data [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0
}

// runHostNetwork is ready at once: this is a master all the same where the network cannot be set up.
func (d *Daemon) runHostNetwork(ctx context.Context, ready func()) error {
	ready()
	if err := d.network.Setup(ctx); err != nil {
		return err
	}
	d.network.Keep(ctx)
	return nil
}

// runHostProxy is runProxy where no pod waits for it.
func (d *Daemon) runHostProxy(ctx context.Context, ready func()) error {
	ready()
	return d.runProxy(ctx, func() {})
}

// runMasters follows the other masters, where there is no network that follows all machines.
func (d *Daemon) runMasters(ctx context.Context, ready func()) error {
	machines := informer.New[*minik8s.Peer](d.asNode(), api.Peers, informer.Options{Views: d.nodeViews(), Log: d.log})
	others := d.newOthers(machines)
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { others.Run(ctx) })
	return machines.Run(ctx, ready)
}

// runNode keeps the Node of a master that is no worker: people see the machine, its state and its heartbeat, and
// nothing is scheduled there: it has a taint, and room for no pod.
func (d *Daemon) runNode(ctx context.Context, ready func()) error {
	c := d.asNode()
	rec := events.New(c, "kubelet", d.cfg.NodeName, d.log)
	go rec.Run(ctx)
	cfg := node.Config{Name: d.cfg.NodeName, IP: d.cfg.NodeIP, DataDir: d.cfg.DataDir, Version: VersionInfo().GitVersion,
		RuntimeVersion: containerdVersion(), Labels: d.nodeLabels(), APIAddress: d.announcedAPI(),
		Unavailable: d.avoidMaster, Taints: []corev1.Taint{{Key: api.ControlPlane, Effect: corev1.TaintEffectNoSchedule}},
		HeartbeatInterval: d.cfg.HeartbeatInterval, Now: clock.Now, Log: d.log}
	if d.network != nil {
		cfg.Network = hostNetwork{d.network}
	}
	n := node.New(cfg, c, node.NoRuntime{}, rec)
	if err := n.Register(ctx); err != nil {
		return err
	}
	ready()
	n.Run(ctx)
	return nil
}
