package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/podconfig"
)

// ensureCgroup makes the pod's cgroup and returns its path; empty where the kubelet makes none.
func (k *Kubelet) ensureCgroup(pod *corev1.Pod) (string, error) {
	if k.cgroups == nil {
		return "", nil
	}
	res := podconfig.PodResources(pod)
	res.PidsLimit = k.cfg.PodPidsLimit
	return k.cgroups.Ensure(string(pod.UID), podspec.QOSClassOf(pod), res)
}

// countCgroup counts the cgroup of a pod from an earlier run.
func (k *Kubelet) countCgroup(pod *corev1.Pod) {
	if k.cgroups != nil {
		k.cgroups.Note(string(pod.UID), podspec.QOSClassOf(pod), podconfig.PodResources(pod))
	}
}

func (k *Kubelet) cgroupOf(pod *corev1.Pod) string {
	if k.cgroups == nil {
		return ""
	}
	return k.cgroups.PodPath(string(pod.UID), podspec.QOSClassOf(pod))
}

func (k *Kubelet) removeCgroup(uid string) error {
	if k.cgroups == nil {
		return nil
	}
	if err := k.cgroups.Remove(uid); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	return nil
}
