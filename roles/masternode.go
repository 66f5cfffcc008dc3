package roles

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/clock"
	"minik8s/internal/events"
	"minik8s/internal/kubelet/node"
)

// runNode keeps the Node of a master that is no worker: people see the machine, its state and its heartbeat, and
// nothing is scheduled there: it has a taint, and room for no pod.
func (d *Daemon) runNode(ctx context.Context, ready func()) error {
	c := d.asNode()
	rec := events.New(c, "kubelet", d.cfg.NodeName, d.log)
	go rec.Run(ctx)
	n := node.New(node.Config{Name: d.cfg.NodeName, IP: d.cfg.NodeIP, DataDir: d.cfg.DataDir, Version: VersionInfo().GitVersion,
		RuntimeVersion: containerdVersion(), Labels: d.nodeLabels(), APIAddress: d.announcedAPI(),
		Taints:            []corev1.Taint{{Key: api.ControlPlane, Effect: corev1.TaintEffectNoSchedule}},
		HeartbeatInterval: d.cfg.HeartbeatInterval, Now: clock.Now, Log: d.log}, c, node.NoRuntime{}, rec)
	if err := n.Register(ctx); err != nil {
		return err
	}
	ready()
	n.Run(ctx)
	return nil
}
