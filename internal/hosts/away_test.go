package hosts_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// A worker whose only master is away probes its pods and restarts their containers, also after a restart of its own daemon,
// and tells it when the master is back.
func TestProbesWithoutAMaster(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	prepared(t, lab, "host m1\nhost w1\nstart m1\njoin w1 to m1 --heartbeat-interval=1s\nexpect node w1 Ready\n")
	m1, w1 := lab.Host("m1"), lab.Host("w1")
	shared := t.TempDir()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probed"}}
	pod.Spec = script("probed", "echo started >> /shared/starts; while [ ! -e /shared/fail ]; do sleep 0.1; done; rm /shared/fail; touch /tmp/failed; sleep 1000", corev1.RestartPolicyAlways).Spec
	pod.Spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: shared}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "!", "-e", "/tmp/failed"}}}}
	c, err := m1.API()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), pod, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	starts := func(n int) func() bool {
		return func() bool {
			text, err := os.ReadFile(filepath.Join(shared, "starts"))
			return err == nil && strings.Count(string(text), "started") == n
		}
	}
	fails := func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(shared, "fail"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	running := func(restarts int32) func() bool {
		return func() bool {
			p, err := client.Get[*corev1.Pod](t.Context(), c, client.Key{Kind: api.Pods, Namespace: "default", Name: "probed"})
			return err == nil && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready && p.Status.ContainerStatuses[0].RestartCount == restarts
		}
	}
	eventually(t, "the pod runs", running(0))
	if err := m1.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	fails()
	eventually(t, "a container that fails its probe is restarted", starts(2))
	if err := w1.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := w1.Start(); err != nil {
		t.Fatal(err)
	}
	fails()
	eventually(t, "and again, by a daemon that has started without a master", starts(3))
	if err := m1.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the master knows", running(2))
}
