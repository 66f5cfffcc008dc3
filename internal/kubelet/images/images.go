package images

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/defaults"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
)

// Manager makes images present on one node.
type Manager struct {
	runtime  cri.Runtime
	client   client.Interface
	authFile string
	now      func() time.Time
	log      *slog.Logger
	arrivals arrivals
}

// New makes a manager. The client reads the pull secrets; authFile, which may be empty, is a docker config.json with logins of this
// machine.
func New(rt cri.Runtime, c client.Interface, authFile string, now func() time.Time, log *slog.Logger) *Manager {
	return &Manager{runtime: rt, client: c, authFile: authFile, now: now, log: log}
}

// EventFunc records an Event about the container.
type EventFunc func(kind, reason, format string, args ...any)

// Changed has to be called when images were added to the node other than by Ensure: pulls of them are cancelled.
func (m *Manager) Changed() { m.arrivals.announce() }

// Ensure makes the image of a container of pod present, as its imagePullPolicy says. It may take as long as a pull,
// and ends with ctx. Errors are *plan.ActionError.
func (m *Manager) Ensure(ctx context.Context, pod *corev1.Pod, c *corev1.Container, event EventFunc) error {
	policy := c.ImagePullPolicy
	if policy == "" {
		policy = defaults.PullPolicy(c.Image)
	}
	if policy == corev1.PullAlways {
		return m.pull(ctx, pod, c.Image, event)
	}
	arrived := m.arrivals.next() // before the check, so that no arrival is missed
	image, err := m.runtime.ImageStatus(ctx, c.Image)
	switch {
	case errors.Is(err, cri.ErrInvalidImageName):
		return invalidName(c.Image, err)
	case err != nil:
		return inspectFailed(c.Image, err)
	case image != nil:
		event(corev1.EventTypeNormal, "Pulled", "Container image %q already present on machine", c.Image)
		return nil
	case policy == corev1.PullNever:
		return neverPulled(c.Image)
	}
	came, err := m.unlessArrived(ctx, c.Image, arrived, func(ctx context.Context) error { return m.pull(ctx, pod, c.Image, event) })
	if came {
		event(corev1.EventTypeNormal, "Pulled", "Container image %q already present on machine", c.Image)
		return nil
	}
	return err
}
