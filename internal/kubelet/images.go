package kubelet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
)

const (
	minPullBackoff = 10 * time.Second
	maxPullBackoff = 5 * time.Minute
	pullTimeout    = time.Hour
	// progressEvery is how often a pull that lasts is told about; an Event is a write.
	progressEvery = 10 * time.Second
)

// doImage sees to the image of the container of a, by its policy.
func (w *worker) doImage(a plan.Action, pod *corev1.Pod) func(context.Context) (outcome, error) {
	spec := podspec.Container(pod, a.Container)
	tell := func(kind, reason, format string, args ...any) {
		w.containerEventOf(pod, a.Container, kind, reason, format, args...)
	}
	return func(ctx context.Context) (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, pullTimeout)
		defer cancel()
		if spec == nil {
			return nil, fmt.Errorf("the pod has no container %s", a.Container)
		}
		if err := w.k.ensureImage(ctx, pod, spec, tell); err != nil {
			return nil, err
		}
		return func(w *worker) {
			w.state.Container(a.Container).ImagePresent = true
			w.k.node.ImagesChanged()
		}, nil
	}
}

// pullPolicy is the container's policy, or Kubernetes' default for its image: always for :latest.
func pullPolicy(spec *corev1.Container) corev1.PullPolicy {
	if spec.ImagePullPolicy != "" {
		return spec.ImagePullPolicy
	}
	name := spec.Image[strings.LastIndexByte(spec.Image, '/')+1:]
	if strings.Contains(name, "@") {
		return corev1.PullIfNotPresent
	}
	if _, tag, ok := strings.Cut(name, ":"); !ok || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

type teller func(kind, reason, format string, args ...any)

// ensureImage makes the image of spec present.
func (k *Kubelet) ensureImage(ctx context.Context, pod *corev1.Pod, spec *corev1.Container, tell teller) error {
	policy := pullPolicy(spec)
	news := k.imageNews.next()
	if policy != corev1.PullAlways {
		image, err := k.runtime.ImageStatus(ctx, spec.Image)
		switch {
		case errors.Is(err, cri.ErrInvalidImageName):
			return invalidImage(spec.Image, err)
		case err != nil:
			return &plan.ActionError{Reason: "ImageInspectError", EventReason: "Failed", Err: err, MinDelay: time.Second, MaxDelay: maxPullBackoff,
				Event: fmt.Sprintf("Failed to inspect image %q: %v", spec.Image, err)}
		case image != nil:
			tell(corev1.EventTypeNormal, "Pulled", "Container image %q already present on machine", spec.Image)
			return nil
		case policy == corev1.PullNever:
			msg := fmt.Sprintf("Container image %q is not present with pull policy of Never", spec.Image)
			return &plan.ActionError{Reason: "ErrImageNeverPull", EventReason: "ErrImageNeverPull", Event: msg,
				Err: errors.New(msg), MinDelay: minPullBackoff, MaxDelay: maxPullBackoff}
		}
	}
	if policy == corev1.PullAlways {
		return k.pull(ctx, pod, spec, tell)
	}
	came, err := k.untilPresent(ctx, spec.Image, news, func(ctx context.Context) error { return k.pull(ctx, pod, spec, tell) })
	if came {
		tell(corev1.EventTypeNormal, "Pulled", "Container image %q already present on machine", spec.Image)
		return nil
	}
	return err
}

// pullAs pulls with each of the logins until one is let in; with none of them if there are none.
func (k *Kubelet) pullAs(ctx context.Context, ref string, auths []cri.Auth, progress func(cri.Progress)) (*cri.Image, error) {
	if len(auths) == 0 {
		return k.runtime.PullImage(ctx, ref, nil, progress)
	}
	var image *cri.Image
	var err error
	for i := range auths {
		image, err = k.runtime.PullImage(ctx, ref, &auths[i], progress)
		// A registry may well say of what somebody may not see that it does not exist.
		if !errors.Is(err, cri.ErrImageUnauthorized) && !errors.Is(err, cri.ErrImageNotFound) {
			break
		}
	}
	return image, err
}

func invalidImage(ref string, err error) error {
	msg := fmt.Sprintf("Failed to apply default image tag %q: %v", ref, err)
	return &plan.ActionError{Reason: "InvalidImageName", EventReason: "InspectFailed", Event: msg, Err: errors.New(msg),
		MinDelay: minPullBackoff, MaxDelay: maxPullBackoff}
}

func (k *Kubelet) pull(ctx context.Context, pod *corev1.Pod, spec *corev1.Container, tell teller) error {
	tell(corev1.EventTypeNormal, "Pulling", "Pulling image %q", spec.Image)
	began := k.now()
	image, err := k.pullAs(ctx, spec.Image, authsFor(spec.Image, k.pullSecrets(ctx, pod, tell)), k.progress(spec.Image, tell))
	if errors.Is(err, cri.ErrInvalidImageName) {
		return invalidImage(spec.Image, err)
	}
	if err != nil {
		err = fmt.Errorf("failed to pull image %q: %w", spec.Image, err)
		return &plan.ActionError{Reason: plan.ReasonErrImagePull, EventReason: "Failed", Err: err, MinDelay: minPullBackoff, MaxDelay: maxPullBackoff,
			Event: fmt.Sprintf("Failed to pull image %q: %v", spec.Image, errors.Unwrap(err))}
	}
	took := k.now().Sub(began).Round(time.Millisecond)
	tell(corev1.EventTypeNormal, "Pulled", "Successfully pulled image %q in %s (%s including waiting). Image size: %d bytes.",
		spec.Image, took, took, image.Size)
	return nil
}

// progress tells how far a pull is, now and then.
func (k *Kubelet) progress(ref string, tell teller) func(cri.Progress) {
	next := k.now().Add(progressEvery)
	return func(p cri.Progress) {
		now := k.now()
		if now.Before(next) {
			return
		}
		next = now.Add(progressEvery)
		const mib = 1 << 20
		if p.Total > 0 {
			tell(corev1.EventTypeNormal, "Pulling", "Pulling image %q: %d%% (%d of %d MiB)", ref, p.Done*100/p.Total, p.Done/mib, p.Total/mib)
			return
		}
		tell(corev1.EventTypeNormal, "Pulling", "Pulling image %q: %d MiB", ref, p.Done/mib)
	}
}
