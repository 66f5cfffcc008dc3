package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

// A pod's worker wakes when a token must be renewed, and then updates the volume.
func TestTokenRenewalWakes(t *testing.T) {
	for _, x := range []struct {
		name string
		due  time.Duration // from now
		want bool          // whether the volumes are made again
	}{{"later", time.Minute, false}, {"now", 0, true}, {"long ago", -time.Hour, true}} {
		pod := plantest.Pod("web")
		pod.Spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}
		s := plantest.At(pod).Sandbox().Volumes().Image("web").Has(plantest.Running("web", 0)).StatusWritten()
		s.In.State.TokenRenewal = plantest.Noon.Add(x.due)
		p := plan.Decide(s.In)
		got := false
		for _, a := range p.Actions {
			got = got || a.Verb == plan.SetUpVolumes
		}
		if got != x.want || !x.want && !p.Wake.Equal(plantest.Noon.Add(x.due)) {
			t.Errorf("%s: %v, wakes at %s", x.name, p.Actions, p.Wake)
		}
	}
}
