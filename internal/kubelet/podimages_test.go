package kubelet

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestImageErrors(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.Pull = func(context.Context, string, func(cri.Progress)) (*cri.Image, error) {
		return nil, fmt.Errorf("%w: nothing:1", cri.ErrImageNotFound)
	}
	b.start()
	b.create(plantest.Pod("web", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nothing:1" }))
	waits := func(reason string) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool {
			return p != nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
				p.Status.ContainerStatuses[0].State.Waiting.Reason == reason
		}
	}
	b.api.await(t, "web", "in ErrImagePull", waits("ErrImagePull"))
	b.api.awaitEvent(t, "web", "Failed")
	b.api.await(t, "web", "in ImagePullBackOff", waits("ImagePullBackOff"))
	b.create(plantest.Pod("never", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "nothing:1", corev1.PullNever
	}))
	b.api.await(t, "never", "in ErrImageNeverPull", waits("ErrImageNeverPull"))
	b.create(plantest.Pod("bad", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "a b:1" }))
	b.api.await(t, "bad", "in InvalidImageName", waits("InvalidImageName"))
	for _, name := range []string{"web", "never", "bad"} {
		b.delete(name)
		b.api.await(t, name, "gone", goneNow)
	}
	b.nothingLeft()
}

func TestAnImportedImageIsNotWaitedFor(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(plantest.Pod("web", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "later:1", corev1.PullNever
	}))
	b.api.awaitEvent(t, "web", "ErrImageNeverPull")
	b.rt.AddImage("later:1")
	b.k.ImagesChanged()
	b.api.await(t, "web", "running", running)
}

// An image that comes by another way while it is being pulled ends the pull, and the pod starts.
func TestAnImportEndsAPull(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.Pull = func(ctx context.Context, _ string, _ func(cri.Progress)) (*cri.Image, error) {
		<-ctx.Done() // a registry that never answers
		return nil, ctx.Err()
	}
	b.start()
	b.create(plantest.Pod("web", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "slow:1", corev1.PullIfNotPresent
	}))
	b.api.awaitEvent(t, "web", "Pulling")
	b.rt.AddImage("slow:1")
	b.k.ImagesChanged()
	b.api.await(t, "web", "running", func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodRunning })
}

func TestPullIsAbandonedWhenThePodGoes(t *testing.T) {
	b := newBed(t)
	begun := make(chan struct{}, 10)
	b.rt.Hooks.Pull = func(ctx context.Context, _ string, _ func(cri.Progress)) (*cri.Image, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.start()
	b.create(plantest.Pod("web", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "slow:1" }))
	<-begun
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

func TestAnotherImageRestartsTheContainer(t *testing.T) {
	for _, p := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyNever} {
		t.Run(string(p), func(t *testing.T) {
			b := newBed(t)
			b.start()
			b.create(plantest.Pod("web", plantest.RestartPolicy(p)))
			pod := b.api.await(t, "web", "running", running).DeepCopy()
			pod.Spec.Containers[0].Image, pod.ResourceVersion = "app:1", ""
			if _, err := b.api.Update(t.Context(), pod, client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			b.api.await(t, "web", "running the other image", func(p *corev1.Pod) bool {
				return running(p) && p.Status.ContainerStatuses[0].Image == "app:1" && p.Status.ContainerStatuses[0].RestartCount == 1
			})
			b.delete("web")
			b.api.await(t, "web", "gone", goneNow)
			b.nothingLeft()
		})
	}
}
