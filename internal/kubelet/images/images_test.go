package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/cri/fake"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

// What is done by each policy, the Events, and when a failure is retried.
func TestEnsure(t *testing.T) {
	rt := fake.New("web:1")
	rt.Hooks.Pull = func(_ context.Context, ref string, _ func(cri.Progress)) (*cri.Image, error) {
		if strings.HasPrefix(ref, "none") {
			return nil, fmt.Errorf("%w: %s", cri.ErrImageNotFound, ref)
		}
		return &cri.Image{Size: 7}, nil
	}
	m := New(rt, nil, "", func() time.Time { return plantest.Noon }, slog.New(slog.DiscardHandler))
	for _, x := range []struct {
		image  string
		policy corev1.PullPolicy
		events string
		reason string
		first  time.Duration
	}{
		{"web:1", corev1.PullIfNotPresent, "Pulled", "", 0},
		{"web:1", corev1.PullNever, "Pulled", "", 0},
		{"web:1", "", "Pulled", "", 0},
		{"web:1", corev1.PullAlways, "Pulling Pulled", "", 0},
		{"app:1", corev1.PullIfNotPresent, "Pulling Pulled", "", 0},
		{"gone:1", corev1.PullNever, "", "ErrImageNeverPull", 10 * time.Second},
		{"none:1", "", "Pulling", "ErrImagePull", 10 * time.Second},
		{"none", "", "Pulling", "ErrImagePull", 10 * time.Second},
		{"a b:1", "", "", "InvalidImageName", 10 * time.Second},
	} {
		var told []string
		c := &corev1.Container{Image: x.image, ImagePullPolicy: x.policy}
		err := m.Ensure(t.Context(), plantest.Pod("p"), c, func(_, reason, _ string, _ ...any) { told = append(told, reason) })
		reason, delay := "", time.Duration(0)
		if e := (*plan.ActionError)(nil); errors.As(err, &e) {
			reason, delay = e.Reason, e.MinDelay
			if e.MaxDelay != 5*time.Minute || e.Event == "" || e.EventReason == "" {
				t.Errorf("%s %s: %+v", x.image, x.policy, e)
			}
		} else if err != nil {
			t.Errorf("%s %s: an error of another kind: %v", x.image, x.policy, err)
		}
		if got := strings.Join(told, " "); got != x.events || reason != x.reason || delay != x.first {
			t.Errorf("%s %s: events %q, %q after %s; want %q, %q after %s", x.image, x.policy, got, reason, delay, x.events, x.reason, x.first)
		}
	}
}
