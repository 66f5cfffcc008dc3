package why

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/why/whytest"
)

// crashLooping is a pod on a good node. Its container web waits for its restart; it ran from a minute ago to 30 s ago.
func crashLooping(code int32, reason string) situation {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.PodSpec{NodeName: "n",
		Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", RestartCount: 3,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason,
			StartedAt: whytest.Ago(time.Minute), FinishedAt: whytest.Ago(30 * time.Second)}}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return situation{kind: api.Pods, obj: pod, nodes: []*corev1.Node{node}, now: whytest.Noon}
}

// told returns an event about a container.
func told(d time.Duration, container, kind, reason, message string) *corev1.Event {
	return &corev1.Event{Type: kind, Reason: reason, Message: message, LastTimestamp: whytest.Ago(d),
		InvolvedObject: corev1.ObjectReference{FieldPath: "spec.containers{" + container + "}"}}
}

func TestExplainKilled(t *testing.T) {
	unhealthy := func(container, message string) *corev1.Event {
		return told(31*time.Second, container, corev1.EventTypeWarning, "Unhealthy", message)
	}
	killing := func(d time.Duration, container, message string) *corev1.Event {
		return told(d, container, corev1.EventTypeNormal, "Killing", message)
	}
	const liveness = "Container web failed liveness probe, will be restarted"
	const byItself = "container web ended with exit code 137"
	for _, x := range []struct {
		name    string
		reason  string
		events  []*corev1.Event
		want    string // among the reasons
		without string
	}{
		{"by itself", "Error", nil, byItself, "killed because"},
		{"liveness", "Error", []*corev1.Event{unhealthy("web", "Liveness probe failed: HTTP probe failed with statuscode: 500"), killing(30*time.Second, "web", liveness)},
			"container web was killed because its liveness probe failed: HTTP probe failed with statuscode: 500", byItself},
		{"startup", "Error", []*corev1.Event{unhealthy("web", "Startup probe failed: not yet"), killing(30*time.Second, "web", "Container web failed startup probe, will be restarted")},
			"its startup probe failed: not yet", byItself},
		{"a probe that could not be asked", "Error", []*corev1.Event{unhealthy("web", "Liveness probe errored and resulted in unknown state: no such file"), killing(30*time.Second, "web", liveness)},
			"its liveness probe failed: no such file", byItself},
		{"postStart", "Error", []*corev1.Event{told(40*time.Second, "web", corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed: exit code 1"),
			killing(40*time.Second, "web", "Container web failed its postStart hook")},
			"its postStart hook failed: exit code 1", byItself},
		{"postStart, in Kubernetes' words", "Error", []*corev1.Event{killing(40*time.Second, "web", "FailedPostStartHook")},
			"its postStart hook failed", byItself},
		{"readiness comes to mind, and is no reason", "Error", []*corev1.Event{unhealthy("web", "Liveness probe failed: once"), unhealthy("web", "Readiness probe failed: no"),
			killing(30*time.Second, "web", liveness)}, "its liveness probe failed: once", "Readiness"},
		{"a failure that did not kill", "Error", []*corev1.Event{unhealthy("web", "Liveness probe failed: once")}, byItself, "killed because"},
		{"another container", "Error", []*corev1.Event{killing(30*time.Second, "app", "Container app failed liveness probe, will be restarted")}, byItself, "killed because"},
		{"an earlier run", "Error", []*corev1.Event{killing(10*time.Minute, "web", liveness)}, byItself, "killed because"},
		{"out of memory", "OOMKilled", []*corev1.Event{killing(30*time.Second, "web", liveness)}, "container web went over its memory limit", "killed because"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := crashLooping(137, x.reason)
			s.events = x.events
			v := explain(s)
			why := strings.Join(v.Why, "\n")
			if v.Good || !strings.Contains(why, x.want) || strings.Contains(why, x.without) {
				t.Errorf("%s\n%s", v.Head, why)
			}
			for _, l := range v.Next {
				if strings.Contains(l, "Probe") && !strings.Contains(x.want, "probe failed") {
					t.Errorf("advice: %s", l)
				}
			}
		})
	}
}

// A pod that runs again still says why it did not run before. So does one that has failed for good.
func TestExplainKilledBefore(t *testing.T) {
	events := []*corev1.Event{told(31*time.Second, "web", corev1.EventTypeWarning, "Unhealthy", "Liveness probe failed: too slow"),
		told(30*time.Second, "web", corev1.EventTypeNormal, "Killing", "Container web failed liveness probe, will be restarted")}
	for _, x := range []struct {
		name   string
		change func(*corev1.Pod)
		good   bool
		want   string
	}{
		{"ready again", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}, true, "container web was last killed 30s ago because its liveness probe failed: too slow"},
		{"not yet", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, false, "container web was last killed 30s ago because its liveness probe failed: too slow"},
		{"failed", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses[0].State = p.Status.ContainerStatuses[0].LastTerminationState
		}, false, "it was killed because its liveness probe failed: too slow"},
	} {
		s := crashLooping(143, "Error")
		s.events = events
		x.change(s.obj.(*corev1.Pod))
		v := explain(s)
		if why := strings.Join(v.Why, "\n"); v.Good != x.good || !strings.Contains(why, x.want) {
			t.Errorf("%s: %s\n%s", x.name, v.Head, why)
		}
	}
}

func TestExplainUnfit(t *testing.T) {
	for _, x := range []struct{ reason, want string }{
		{"NodeAffinity", "minik8sd ctl label nodes n disk=ssd"}, {"NodeAffinity", "take nodeName out"}, {"TaintToleration", "toleration"}, {"OutOfcpu", ""},
	} {
		s := crashLooping(0, "")
		pod := s.obj.(*corev1.Pod)
		pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: x.reason, Message: "Pod was rejected: no"}
		v := explain(s)
		if next := strings.Join(v.Next, "\n"); !strings.Contains(next, x.want) || x.want == "" && strings.Contains(next, "anew") {
			t.Errorf("%s: %s", x.reason, next)
		}
	}
}

// A workload's trouble is that of its first pod that is not well, with the events about that pod.
func TestExplainWorkloadByItsPod(t *testing.T) {
	s := crashLooping(137, "Error")
	pod := s.obj.(*corev1.Pod)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	s.kind, s.obj, s.pods = api.ReplicaSets, set, []*corev1.Pod{pod}
	for _, e := range []*corev1.Event{told(31*time.Second, "web", corev1.EventTypeWarning, "Unhealthy", "Liveness probe failed: too slow"),
		told(30*time.Second, "web", corev1.EventTypeNormal, "Killing", "Container web failed liveness probe, will be restarted")} {
		e.InvolvedObject.Name = pod.Name
		s.told = append(s.told, e)
	}
	v := explain(s)
	if why := strings.Join(v.Why, "\n"); !strings.Contains(why, "container web was killed because its liveness probe failed: too slow") {
		t.Errorf("%s\n%s", v.Head, why)
	}
}

func TestExplainJob(t *testing.T) {
	resumed := batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse, Reason: "JobResumed", Message: "Job resumed", LastTransitionTime: whytest.Ago(time.Minute)}
	suspended := batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: "JobSuspended", Message: "Job suspended", LastTransitionTime: whytest.Ago(time.Minute)}
	start := whytest.Ago(time.Minute)
	for _, x := range []struct {
		name string
		spec batchv1.JobSpec
		st   batchv1.JobStatus
		want []string
	}{
		{"just begun", batchv1.JobSpec{}, batchv1.JobStatus{}, []string{"no pod of it is active yet", "it has no pods"}},
		{"resumed", batchv1.JobSpec{}, batchv1.JobStatus{Conditions: []batchv1.JobCondition{resumed}, Active: 2, Ready: new(int32(1))},
			[]string{"it was suspended before, and resumed 60s ago", "its pods: 2 active, 1 of them ready", "it has no pods"}},
		{"resumed, between two tries", batchv1.JobSpec{BackoffLimit: new(int32(6))}, batchv1.JobStatus{Conditions: []batchv1.JobCondition{resumed}, Failed: 2},
			[]string{"it was suspended before, and resumed 60s ago",
				"no pod of it is active: the next is made when the back-off ends, which is longer after each failure",
				"pods that have failed: 2; with more than 6 it is given up", "it has no pods"}},
		{"suspended", batchv1.JobSpec{Suspend: new(true)}, batchv1.JobStatus{Conditions: []batchv1.JobCondition{suspended}},
			[]string{"it was suspended 60s ago: no pod of it runs"}},
		{"that may run nothing", batchv1.JobSpec{Parallelism: new(int32(0))}, batchv1.JobStatus{}, []string{"its parallelism is 0: it may run no pod"}},
		{"with a deadline", batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(120))}, batchv1.JobStatus{Active: 1, StartTime: &start},
			[]string{"its pods: 1 active, 0 of them ready", "its activeDeadlineSeconds end it 2026-01-01T12:01:00Z at the latest", "it has no pods"}},
		{"ending", batchv1.JobSpec{}, batchv1.JobStatus{Active: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded", Message: "Job was active longer than specified deadline"}}},
			[]string{"it is ending (DeadlineExceeded): Job was active longer than specified deadline", "its pods: 1 active, 0 of them ready", "it has no pods"}},
		{"failed", batchv1.JobSpec{}, batchv1.JobStatus{Failed: 1, Conditions: []batchv1.JobCondition{
			resumed, {Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"}}},
			[]string{"BackoffLimitExceeded: Job has reached the specified backoff limit", "it has no pods"}},
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sum"}, Spec: x.spec, Status: x.st}
		v := explain(situation{kind: api.Jobs, obj: job, now: whytest.Noon})
		if got, want := strings.Join(v.Why, "\n"), strings.Join(x.want, "\n"); v.Good || got != want {
			t.Errorf("%s: %s\n%s", x.name, v.Head, got)
		}
	}
}

// For a pod on a host that blocks its traffic, this is always mentioned.
func TestExplainFiltered(t *testing.T) {
	s := crashLooping(1, "Error")
	s.nodes[0].Spec.PodCIDR = "10.244.0.0/24"
	s.nodes[0].Status.Conditions = append(s.nodes[0].Status.Conditions, corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable,
		Status: corev1.ConditionTrue, Message: "the host's packet filter stops pods' traffic: table ip fw chain forward, policy drop"})
	v := explain(s)
	if why := strings.Join(v.Why, "\n"); v.Good || !strings.Contains(why, "table ip fw chain forward, policy drop") {
		t.Errorf("%s\n%s", v.Head, why)
	}
	// A part is told of where something is wrong.
	c := &s.nodes[0].Status.Conditions[len(s.nodes[0].Status.Conditions)-1]
	c.Status, c.Reason, c.Message = corev1.ConditionFalse, api.ReasonPodTrafficFiltered, "a part of pods' traffic: table ip fw chain forward, rule with handle 3 drops"
	if why := strings.Join(explain(s).Why, "\n"); !strings.Contains(why, "may be stopped on node") || !strings.Contains(why, "handle 3") {
		t.Error(why)
	}
	c.Status, c.Message = corev1.ConditionTrue, "policy drop"
	s.obj.(*corev1.Pod).Spec.HostNetwork = true
	if why := strings.Join(explain(s).Why, "\n"); strings.Contains(why, "policy drop") {
		t.Errorf("a pod on the host's network is told of pods' traffic: %s", why)
	}
}

// An image that cannot be pulled, and that the node has, needs no registry.
func TestExplainImageThatIsThere(t *testing.T) {
	for _, x := range []struct {
		policy corev1.PullPolicy
		name   string
		there  bool
	}{
		{corev1.PullAlways, "docker.io/library/web:1", true},
		{corev1.PullAlways, "docker.io/library/web:2", false},
		{corev1.PullNever, "docker.io/library/web:1", false},
	} {
		s := crashLooping(1, "Error")
		pod := s.obj.(*corev1.Pod)
		pod.Spec.Containers[0].ImagePullPolicy = x.policy
		pod.Status.ContainerStatuses[0].State.Waiting.Reason = "ErrImagePull"
		s.nodes[0].Status.Images = []corev1.ContainerImage{{Names: []string{"docker.io/library/web@sha256:00", x.name}}}
		if next := strings.Join(explain(s).Next, "\n"); strings.Contains(next, "imagePullPolicy: IfNotPresent") != x.there || strings.Contains(next, "is its name right? web:1") == x.there {
			t.Errorf("%+v: %s", x, next)
		}
	}
}

// TestExplainEphemeral checks that an ephemeral container that does not start is mentioned, and that how one ended does
// not matter.
func TestExplainEphemeral(t *testing.T) {
	for _, x := range []struct {
		name  string
		state corev1.ContainerState
		head  string
		why   string
	}{
		{"no image", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no route"}},
			"its ephemeral container dbg does not run: ErrImagePull", "no route"},
		{"no target", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: "the target is not running"}},
			"its ephemeral container dbg does not run", "the target is not running"},
		{"on its way", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}, "runs and is ready", ""},
		{"ended", corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 130, Reason: "Error"}}, "runs and is ready", ""},
	} {
		s := crashLooping(1, "Error")
		pod := s.obj.(*corev1.Pod)
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions:                 []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "dbg", State: x.state}}}
		v := explain(s)
		if !strings.Contains(v.Head, x.head) || !strings.Contains(strings.Join(v.Why, "\n"), x.why) {
			t.Errorf("%s: %q %q", x.name, v.Head, v.Why)
		}
	}
}
