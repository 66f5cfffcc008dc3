package podconfig

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestResourceFields(t *testing.T) {
	c := &corev1.Container{Resources: corev1.ResourceRequirements{Requests: list("1500m", "64Mi"), Limits: list("", "100Mi")}}
	node := list("8", "1Gi")
	for ref, want := range map[[2]string]string{
		{"requests.cpu", ""}: "2", {"requests.cpu", "1m"}: "1500", {"limits.cpu", ""}: "8", {"limits.memory", "1Mi"}: "100",
		{"requests.memory", "1Gi"}: "1", {"requests.memory", ""}: "67108864", {"requests.ephemeral-storage", ""}: "0",
	} {
		r := &corev1.ResourceFieldSelector{Resource: ref[0]}
		if ref[1] != "" {
			r.Divisor = resource.MustParse(ref[1])
		}
		if got, err := resourceOf(c, r, node); err != nil || got != want {
			t.Errorf("%v: %s, %v; want %s", ref, got, err, want)
		}
	}
	if _, err := resourceOf(c, &corev1.ResourceFieldSelector{Resource: "limits.gpu"}, node); err == nil {
		t.Error("no error for what is not to be named")
	}
}
