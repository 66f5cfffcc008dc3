package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/rewatch"
)

// watch follows the Node object: whoever deletes it finds it made again, as long as the kubelet runs.
func (n *Keeper) watch(ctx context.Context) {
	opts := client.WatchOptions{Bookmarks: true, Fields: fields.OneTermEqualSelector("metadata.name", n.cfg.Name)}
	rewatch.Follow(ctx, n.client, n.log, api.Nodes, opts, func(w client.Watcher) (ok bool) {
		there := false
		for ev := range w.Events() {
			switch {
			case ev.Type == client.Bookmark:
				if ev.InitialEnd && !there {
					n.registerAgain(ctx)
				}
				ok = true
			case ev.Type == client.Deleted:
				there = false
				n.registerAgain(ctx)
			default:
				there = true
				n.remember(ctx, ev.Object.(*corev1.Node))
				n.repair(ctx, ev.Object.(*corev1.Node))
			}
		}
		return ok
	})
}

func (n *Keeper) registerAgain(ctx context.Context) {
	n.log.Info("the Node object is gone, registering it again")
	if err := n.Register(ctx); err != nil && ctx.Err() == nil {
		n.log.Error("node not registered again", "error", err)
	}
}

// repair marks the Node Ready at once when it says otherwise, as after a time without heartbeats.
func (n *Keeper) repair(ctx context.Context, node *corev1.Node) {
	if isReady(node) {
		return
	}
	if err := n.writeStatus(ctx, node); err != nil && ctx.Err() == nil {
		n.log.Warn("node status not written", "error", err)
	}
}
