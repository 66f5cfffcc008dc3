package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/plan"
)

// doImage pulls the image of a's container if necessary.
func (w *worker) doImage(a plan.Action, pod *corev1.Pod) func(context.Context) (outcome, error) {
	c := podspec.Container(pod, a.Container)
	event := func(kind, reason, format string, args ...any) {
		w.containerEventOf(pod, a.Container, kind, reason, format, args...)
	}
	return func(ctx context.Context) (outcome, error) {
		if c == nil {
			return nil, fmt.Errorf("the pod has no container %s", a.Container)
		}
		if err := w.k.images.Ensure(ctx, pod, c, event); err != nil {
			return nil, err
		}
		return func(w *worker) {
			w.state.Container(a.Container).ImagePresent = true
			w.k.node.ImagesChanged()
		}, nil
	}
}
