package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"minik8s/internal/api/podspec"
)

// cgroupFiles are the files of that name in the cgroups of a pod and its containers, of either version.
func (b *realBed) cgroupFiles(pod *corev1.Pod, name string) map[string]string {
	b.t.Helper()
	out := map[string]string{}
	at := b.k.cgroupOf(pod)
	for _, pattern := range []string{"/sys/fs/cgroup" + at, "/sys/fs/cgroup/*" + at, "/sys/fs/cgroup" + at + "/*", "/sys/fs/cgroup/*" + at + "/*"} {
		files, err := filepath.Glob(filepath.Join(pattern, name))
		if err != nil {
			b.t.Fatal(err)
		}
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil {
				out[f] = strings.TrimSpace(string(data))
			}
		}
	}
	return out
}

// A memory limit is one of memory and swap; the daemon and its node outlive what a pod does.
func TestRealPodIsLimited(t *testing.T) {
	b := newRealBed(t)
	b.cfg.PodPidsLimit = 30
	b.stop()
	b.start()
	const limit = 32 << 20
	pod := b.create(shell("bomb", "while [ ! -e /both/up ]; do :; done; i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; "+forever, func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(limit, resource.BinarySI)}
		// One more process, to look at. The bomb waits for it, and it never forks: the bomb uses up all processes.
		beside := shellContainer("beside", ": >/both/up; exec sleep 1000")
		beside.Resources = p.Spec.Containers[0].Resources
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "both", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		both := corev1.VolumeMount{Name: "both", MountPath: "/both"}
		beside.VolumeMounts = append(beside.VolumeMounts, both)
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, both)
		p.Spec.Containers = append([]corev1.Container{beside}, p.Spec.Containers...)
	}))
	b.api.await(t, "bomb", "unable to fork", func(p *corev1.Pod) bool {
		st := podspec.ContainerStatus(&p.Status, "main")
		return st != nil && st.State.Terminated != nil
	})
	if out := b.logs("bomb", "main", &corev1.PodLogOptions{}); !strings.Contains(out, "fork") {
		t.Errorf("it ended otherwise: %q", out)
	}
	bounded := false
	for file, text := range b.cgroupFiles(pod, "pids.max") {
		bounded = bounded || text == "30"
		t.Log(file, text)
	}
	if !bounded {
		t.Error("no cgroup of the pod has a limit of processes")
	}
	// A container that is being made has its cgroup before it has its limits, so what is too much has to go.
	var swap, swap2 map[string]string
	eventually(t, "swap limited", func() error {
		swap, swap2 = b.cgroupFiles(pod, "memory.memsw.limit_in_bytes"), b.cgroupFiles(pod, "memory.swap.max")
		for file, text := range swap {
			if n, err := strconv.ParseInt(text, 10, 64); err != nil || n > 2*limit {
				return fmt.Errorf("%s: %s", file, text)
			}
		}
		for file, text := range swap2 {
			if text != "0" {
				return fmt.Errorf("%s: %s", file, text)
			}
		}
		return nil
	})
	if len(swap)+len(swap2) == 0 {
		t.Log("this kernel counts no swap")
	}
	b.create(shell("other", "exit 0", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }))
	b.api.await(t, "other", "ended", hasPhase(corev1.PodSucceeded))

	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	mine, err := strconv.Atoi(strings.TrimSpace(string(own)))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, procs := range b.cgroupFiles(pod, "cgroup.procs") {
		for _, pid := range strings.Fields(procs) {
			data, err := os.ReadFile("/proc/" + pid + "/oom_score_adj")
			if err != nil {
				continue
			}
			seen++
			if adj, err := strconv.Atoi(strings.TrimSpace(string(data))); err != nil || adj <= mine {
				t.Errorf("a pod's process has %d, the daemon %d", adj, mine)
			}
		}
	}
	if seen == 0 {
		t.Error("no process of the pod was seen")
	}
	b.remove("bomb")
	b.remove("other")
}
