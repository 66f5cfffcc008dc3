package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// HasChangingVolumes reports whether a pod has a volume whose content follows other objects, or the pod itself.
func HasChangingVolumes(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil {
			return true
		}
	}
	return false
}

// volumesOutdated reports whether the volumes may lack a change of an object, or that a token in one is to be
// renewed.
func (s *State) volumesOutdated(now time.Time) bool {
	return !s.VolumesReady || s.VolumesApplied < s.VolumeChanges || !s.TokenRenewal.IsZero() && !now.Before(s.TokenRenewal)
}
