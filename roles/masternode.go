package roles

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/clock"
	"minik8s/internal/events"
	"minik8s/internal/kubelet/node"
	"minik8s/internal/supervise"
)

// masterNodeParts are the parts of a master that is no worker. Its host reaches the pods of the workers, as every host
// does: who asks this master for a pod's port is sent there. It is a master all the same where that fails.
func (d *Daemon) masterNodeParts() []supervise.Part {
	parts := []supervise.Part{{Name: "node", Policy: supervise.Keep, Run: d.runNode, After: d.api()}}
	if d.network == nil {
		d.log.Info("this host does not reach pods: that needs root")
		return parts
	}
	return append(parts,
		supervise.Part{Name: "network", Policy: supervise.Keep, Run: d.runHostNetwork},
		supervise.Part{Name: "nodes", Policy: supervise.Keep, Run: d.runNodes, After: append(d.api(), "network")},
		supervise.Part{Name: "proxy", Policy: supervise.Keep, Run: d.runProxy, After: append(d.api(), "network")})
}

// hasNetwork reports whether this machine takes part in the pods' network. A worker must.
func (d *Daemon) hasNetwork() bool { return d.cfg.Has(config.Worker) || os.Geteuid() == 0 }

func (d *Daemon) runHostNetwork(ctx context.Context, ready func()) error {
	if err := d.network.Setup(ctx); err != nil {
		return err
	}
	ready()
	d.network.Keep(ctx)
	return nil
}

// runNode keeps the Node of a master that is no worker: people see the machine, its state and its heartbeat, and
// nothing is scheduled there: it has a taint, and room for no pod.
func (d *Daemon) runNode(ctx context.Context, ready func()) error {
	c := d.asNode()
	rec := events.New(c, "kubelet", d.cfg.NodeName, d.log)
	go rec.Run(ctx)
	cfg := node.Config{Name: d.cfg.NodeName, IP: d.cfg.NodeIP, DataDir: d.cfg.DataDir, Version: VersionInfo().GitVersion,
		RuntimeVersion: containerdVersion(), Labels: d.nodeLabels(), APIAddress: d.announcedAPI(),
		Taints:            []corev1.Taint{{Key: api.ControlPlane, Effect: corev1.TaintEffectNoSchedule}},
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
