package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/informer/reflector"
)

// watch follows the Node object, and registers it again if it is deleted.
func (n *Manager) watch(ctx context.Context) {
	seen := func(obj api.Object) {
		node := obj.(*corev1.Node)
		n.remember(ctx, node)
		n.repair(ctx, node)
	}
	r := reflector.Reflector{Client: n.client, Kind: api.Nodes, Fields: fields.OneTermEqualSelector("metadata.name", n.cfg.Name), Log: n.log,
		Replace: func(items []api.Object, _ string) {
			if len(items) == 0 {
				n.registerAgain(ctx)
				return
			}
			seen(items[0])
		},
		Apply: func(e client.Event) {
			switch e.Type {
			case client.Bookmark:
			case client.Deleted:
				n.registerAgain(ctx)
			default:
				seen(e.Object)
			}
		}}
	r.Run(ctx)
}

func (n *Manager) registerAgain(ctx context.Context) {
	n.log.Info("the Node object is gone, registering it again")
	if err := n.Register(ctx); err != nil && ctx.Err() == nil {
		n.log.Error("node not registered again", "error", err)
	}
}

// repair marks the Node Ready at once if its status says otherwise, as after a time without heartbeats, and has it say where this
// machine's API is if somebody has changed that.
func (n *Manager) repair(ctx context.Context, node *corev1.Node) {
	if !n.announced(node) {
		if err := n.adopt(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("the Node does not say where this machine's API is", "error", err)
		}
		return
	}
	if n.saysReadiness(node) {
		return
	}
	if err := n.writeStatus(ctx, node); err != nil && ctx.Err() == nil {
		n.log.Warn("node status not written", "error", err)
	}
}
