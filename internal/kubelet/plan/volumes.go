package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// HasChangingVolumes reports whether a pod has a volume whose content comes from other objects, or from the pod itself.
func HasChangingVolumes(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil {
			return true
		}
	}
	return false
}

// volumesOutdated reports whether an object may have changed since the volumes were updated, or a token in one must be
// renewed.
func (s *State) volumesOutdated(now time.Time) bool {
	return !s.VolumesReady || s.VolumesApplied < s.VolumeChanges || !s.TokenRenewal.IsZero() && !now.Before(s.TokenRenewal)
}
