package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/plan"
)

func TestStreak(t *testing.T) {
	p := &corev1.Probe{SuccessThreshold: 2, FailureThreshold: 3}
	var c plan.Streak
	got := ""
	for _, answer := range "++++--+---++" {
		if c.Add(answer == '+', p) {
			got += string(answer)
		} else {
			got += "."
		}
	}
	if want := ".+++.....-.+"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
