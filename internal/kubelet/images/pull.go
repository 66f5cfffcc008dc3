package images

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

const (
	pullTimeout = time.Hour
	// progressEvery is how often the progress of a pull is recorded; an Event is a write.
	progressEvery = 10 * time.Second
)

// pull pulls an image with the logins of the pod's secrets, and then with this machine's.
func (m *Manager) pull(ctx context.Context, pod *corev1.Pod, image string, event EventFunc) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	event(corev1.EventTypeNormal, "Pulling", "Pulling image %q", image)
	began := m.now()
	got, err := m.pullAs(ctx, image, authsFor(image, m.pullSecrets(ctx, pod, event), m.ownLogins()), m.progress(image, event))
	if errors.Is(err, cri.ErrInvalidImageName) {
		return invalidName(image, err)
	}
	if err != nil {
		return pullFailed(image, err)
	}
	took := m.now().Sub(began).Round(time.Millisecond)
	event(corev1.EventTypeNormal, "Pulled", "Successfully pulled image %q in %s (%s including waiting). Image size: %d bytes.",
		image, took, took, got.Size)
	return nil
}

// pullAs pulls with one login after the other until a registry accepts it; with none if there are none.
func (m *Manager) pullAs(ctx context.Context, image string, auths []cri.Auth, progress func(cri.Progress)) (*cri.Image, error) {
	if len(auths) == 0 {
		return m.runtime.PullImage(ctx, image, nil, progress)
	}
	var got *cri.Image
	var err error
	for i := range auths {
		got, err = m.runtime.PullImage(ctx, image, &auths[i], progress)
		// A registry may report an image as not existing if the login has no access to it.
		if !errors.Is(err, cri.ErrImageUnauthorized) && !errors.Is(err, cri.ErrImageNotFound) {
			break
		}
	}
	return got, err
}

// progress records a pull's progress in Events, every progressEvery.
func (m *Manager) progress(image string, event EventFunc) func(cri.Progress) {
	next := m.now().Add(progressEvery)
	return func(p cri.Progress) {
		now := m.now()
		if now.Before(next) {
			return
		}
		next = now.Add(progressEvery)
		const mib = 1 << 20
		if p.Total > 0 {
			event(corev1.EventTypeNormal, "Pulling", "Pulling image %q: %d%% (%d of %d MiB)", image, p.Done*100/p.Total, p.Done/mib, p.Total/mib)
			return
		}
		event(corev1.EventTypeNormal, "Pulling", "Pulling image %q: %d MiB", image, p.Done/mib)
	}
}
