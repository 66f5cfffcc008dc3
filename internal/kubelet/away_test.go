package kubelet

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

// accessed is a pod with what admission mounts into pods: a token, the cluster's CA, the namespace.
func accessed(b *bed, name string) *corev1.Pod {
	for _, obj := range []api.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ca"}, Data: map[string]string{"ca.crt": "CA"}},
	} {
		if _, err := b.api.Create(b.t.Context(), obj, client.WriteOptions{}); err != nil {
			b.t.Fatal(err)
		}
	}
	pod := plantest.Pod(name)
	pod.Spec.ServiceAccountName = "default"
	pod.Spec.Volumes = []corev1.Volume{{Name: "access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}}},
	}}}}}
	return pod
}

// A kubelet that starts while no master can be reached goes on with its pods, also those that have a token: it restarts what ends. When the API is
// back, what was deleted meanwhile goes, and nothing else was disturbed.
func TestStartWithoutTheAPI(t *testing.T) {
	b := newBed(t)
	b.cfg.Checkpoints = true
	b.start()
	b.create(accessed(b, "stays"))
	t.Cleanup(func() { _ = b.k.volumes.TearDown(string(b.api.pod(t, "stays").UID)) }) // a token lies in memory
	b.create(plantest.Pod("deleted"))
	b.create(plantest.Pod("done", plantest.RestartPolicy(corev1.RestartPolicyNever)))
	stays, deleted := b.api.await(t, "stays", "running", running), b.api.await(t, "deleted", "running", running)
	done := b.api.await(t, "done", "running", running)
	b.rt.Exit(string(done.UID), "web", 0, false)
	b.api.await(t, "done", "succeeded", hasPhase(corev1.PodSucceeded))
	b.stop()

	live := b.api.node.Interface
	away := faulty.New(live, faulty.Rates{Drop: 1}, 1)
	b.api.node.Interface = away
	b.rt.Restart()
	b.k = New(b.cfg, b.api.node, b.cri)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.k.Run(ctx, func() {}) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if !b.rt.Exit(string(stays.UID), "web", 1, false) {
		t.Fatal("its container does not run")
	}
	eventually(t, "restarted without the API", func() error {
		pod, err := b.rt.Pod(ctx, string(stays.UID))
		if err != nil {
			return err
		}
		for _, c := range pod.Containers {
			if c.State == cri.Running && c.Attempt > 0 {
				return nil
			}
		}
		return fmt.Errorf("%+v", pod.Containers)
	})
	b.delete("deleted")
	away.Heal()
	b.api.await(t, "deleted", "gone", goneNow)
	p := b.api.await(t, "stays", "restarted once", func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
	if p.UID != stays.UID || deleted.UID == p.UID {
		t.Error("another pod")
	}
	if pod, err := b.rt.Pod(ctx, string(done.UID)); err != nil || len(pod.Containers) > 1 {
		t.Errorf("the finished pod was started again: %+v, %v", pod, err)
	}
}
