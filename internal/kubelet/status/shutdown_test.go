package status_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
	"minik8s/internal/kubelet/status"
)

// A pod that ends for the machine's shutdown says so once it has ended, in Kubernetes' words.
func TestShutdownStatus(t *testing.T) {
	never := plantest.RestartPolicy(corev1.RestartPolicyNever)
	pod := func(change ...func(*corev1.Pod)) *plantest.Given {
		s := plantest.At(plantest.Pod("web", change...)).Sandbox()
		s.In.State.Shutdown = &plan.Shutdown{At: plantest.Noon, Within: time.Minute}
		return s
	}
	const said = " Terminated Pod was terminated in response to imminent node shutdown. True TerminationByKubelet"
	for _, c := range []struct {
		name string
		at   *plantest.Given
		want string
	}{
		{"it still runs", pod().Has(plantest.Running("web", 0)), "Running   none"},
		{"killed", pod().Has(plantest.Exited("web", 0, 137, plantest.Noon)), "Failed" + said},
		{"ended without an error, though it was to run on", pod().Has(plantest.Exited("web", 0, 0, plantest.Noon)), "Failed" + said},
		{"it was to end", pod(never).Has(plantest.Exited("web", 0, 0, plantest.Noon)), "Succeeded" + said},
		{"it was to end, otherwise", pod(never).Has(plantest.Exited("web", 0, 143, plantest.Noon)), "Failed" + said},
		{"never started", pod(), "Failed" + said},
		{"half started", pod(plantest.TwoContainers).Has(plantest.Exited("web", 0, 0, plantest.Noon)), "Failed" + said},
		{"deleted by somebody", pod(plantest.Deleting(30*time.Second, 30)).Has(plantest.Exited("web", 0, 1, plantest.Noon)), "Failed   none"},
	} {
		st := status.Of(c.at.In, plantest.HostIP)
		disrupted := "none"
		if d := podspec.Condition(st.Conditions, corev1.DisruptionTarget); d != nil {
			disrupted = fmt.Sprint(d.Status, " ", d.Reason)
		}
		if got := fmt.Sprint(st.Phase, " ", st.Reason, " ", st.Message, " ", disrupted); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		for _, cs := range st.ContainerStatuses {
			if podspec.Finished(st.Phase) && (cs.State.Terminated == nil || cs.Ready) {
				t.Errorf("%s: %+v", c.name, cs)
			}
		}
		// What was written stays.
		if podspec.Finished(st.Phase) {
			c.at.In.Pod.Status = st
			if again := status.Of(c.at.In, plantest.HostIP); !status.Equal(&again, &st) {
				t.Errorf("%s: it changes to %+v", c.name, again)
			}
		}
	}
}
