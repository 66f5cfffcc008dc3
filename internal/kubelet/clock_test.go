package kubelet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

// Setting the clock while a pod ends neither shortens nor extends its grace period.
func TestGraceByAClockThatIsSet(t *testing.T) {
	grace := int64(30)
	for _, step := range []time.Duration{0, time.Hour, -time.Hour} { // of the clock that made the time stamp
		pod := plantest.Pod("web")
		at := metav1.NewTime(plantest.Noon.Add(30*time.Second + step))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
		w := &worker{k: &Kubelet{now: func() time.Time { return plantest.Noon }}, state: plan.NewState()}
		w.takePod(pod)
		for passed, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 10 * time.Second: 20 * time.Second, time.Minute: 0} {
			in := plan.Input{Pod: w.pod, State: w.state, Now: plantest.Noon.Add(passed)}
			if got := in.Termination().Grace; got != want {
				t.Errorf("stepped by %s, %s later %s are left, want %s", step, passed, got, want)
			}
		}
		// Another deletion with a shorter grace counts from when it is heard of.
		w.k.now = func() time.Time { return plantest.Noon.Add(10 * time.Second) }
		next, five := pod.DeepCopy(), int64(5)
		later := metav1.NewTime(at.Add(-15 * time.Second))
		next.DeletionTimestamp, next.DeletionGracePeriodSeconds = &later, &five
		w.takePod(next)
		if got := (plan.Input{Pod: w.pod, State: w.state, Now: plantest.Noon.Add(11 * time.Second)}).Termination().Grace; got != 4*time.Second {
			t.Errorf("stepped by %s: of the shorter grace %s are left", step, got)
		}
	}
}
