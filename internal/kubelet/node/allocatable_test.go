package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAllocatableOf(t *testing.T) {
	capacity := corev1.ResourceList{}
	for name, q := range map[corev1.ResourceName]string{"cpu": "2", "memory": "1Gi", "pods": "110", "x.io/foo": "3", "ephemeral-storage": "1005"} {
		capacity[name] = resource.MustParse(q)
	}
	got := allocatableOf(capacity)
	for name, want := range map[corev1.ResourceName]int64{"cpu": 2, "memory": 1 << 30, "pods": 110, "x.io/foo": 3, "ephemeral-storage": 900} {
		if q := got[name]; q.Value() != want {
			t.Errorf("%s: %d, want %d", name, q.Value(), want)
		}
	}
	if disk := capacity[corev1.ResourceEphemeralStorage]; disk.Value() != 1005 {
		t.Errorf("the capacity was changed to %s", disk.String())
	}
}
