package kubelet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/kubelet/plan"
)

// The kubelet is the shutdown.Node: see there what the methods are for.

// SetShuttingDown implements shutdown.Node.
func (k *Kubelet) SetShuttingDown(ctx context.Context, down bool) {
	k.shuttingDown.Store(down)
	if err := k.node.SetShuttingDown(ctx, down); err != nil {
		k.log.Warn("the Node does not say whether the machine shuts down", "down", down, "error", err)
	}
}

// EndPod implements shutdown.Node.
func (k *Kubelet) EndPod(uid types.UID, within time.Duration) <-chan struct{} {
	ended := make(chan struct{})
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.workers[uid]
	if w == nil {
		close(ended) // nothing of it is left
		return ended
	}
	w.send(func(b *inbox) {
		b.shutdown = &plan.Shutdown{At: k.now(), Within: within}
		b.ended = append(b.ended, ended)
	})
	return ended
}

// hasEnded reports whether nothing of the pod runs any more and the API knows how it ended.
func (w *worker) hasEnded(in plan.Input) bool {
	return in.Termination() != nil && !in.Active() && (in.Pod == nil || in.StatusWritten)
}

// tellEnded tells those who wait for the pod's end.
func (w *worker) tellEnded() {
	for _, ch := range w.ended {
		close(ch)
	}
	w.ended = nil
}
