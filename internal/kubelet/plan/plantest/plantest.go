// Package plantest makes pods and views of the runtime for tests of the kubelet's plan. Only tests import it.
package plantest

import (
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
)

// WantsDisk makes the pod require a node with this kind of disk.
func WantsDisk(disk string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{disk}}},
			}}}}}
	}
}

func Pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	grace := int64(30)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec: corev1.PodSpec{NodeName: "node1", RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func RestartPolicy(p corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = p }
}

// WithDebug adds ephemeral containers; "a>web" is one that targets the container web.
func WithDebug(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			name, target, _ := strings.Cut(name, ">")
			e := corev1.EphemeralContainer{TargetContainerName: target}
			e.Name, e.Image = name, "app:1"
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, e)
		}
	}
}

// Ran sets an ephemeral container's status, for one that the runtime may no longer have.
func Ran(name string, state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: name, ContainerID: "containerd://x", State: state}}
	}
}

var Noon = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

func Ago(d time.Duration) time.Time { return Noon.Add(-d) }

// Given builds an input for Decide, step by step.
type Given struct{ In plan.Input }

func At(pod *corev1.Pod) *Given {
	in := plan.Input{Pod: pod, State: plan.NewState(), Now: Noon}
	in.State.Admitted = true
	if pod != nil {
		if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
			in.State.DeletionSeen = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		}
		pod.UID = "u1"
		in.View.UID = "u1"
	}
	return &Given{in}
}

func (s *Given) Sandbox() *Given {
	s.In.View.Sandbox = &cri.Sandbox{PodUID: "u1", Whole: true, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2")}}
	return s
}

func (s *Given) BrokenSandbox() *Given {
	s.Sandbox().In.View.Sandbox.Whole = false
	return s
}

func (s *Given) Volumes() *Given { s.In.State.VolumesReady = true; return s }

func (s *Given) Image(name string) *Given { s.In.State.Container(name).ImagePresent = true; return s }

func (s *Given) Has(c cri.Container) *Given {
	c.PodUID = "u1"
	if c.CreatedAt.IsZero() {
		c.CreatedAt = c.StartedAt
	}
	s.In.View.Containers = append(s.In.View.Containers, c)
	return s
}

func (s *Given) InProgress(a plan.Action) *Given {
	s.In.State.InProgress[a.Key()] = plan.Running{Action: a, KilledBy: Noon.Add(a.Grace)}
	return s
}

func (s *Given) Failed(a plan.Action, until time.Time) *Given {
	s.In.State.Failures[a.Key()] = &plan.Failure{Reason: "X", At: Noon, RetryAt: until, Delay: time.Second}
	return s
}

func (s *Given) StatusWritten() *Given { s.In.StatusWritten = true; return s }

func (s *Given) TornDown() *Given { s.In.State.TornDown, s.In.State.LogsRemoved = true, true; return s }

func Running(name string, attempt int) cri.Container {
	return cri.Container{ID: name + string(rune('0'+attempt)), Name: name, Attempt: attempt, State: cri.Running, StartedAt: Ago(time.Minute)}
}

func Exited(name string, attempt int, code int32, when time.Time) cri.Container {
	c := Running(name, attempt)
	c.State, c.ExitCode, c.FinishedAt = cri.Exited, code, when
	return c
}

func Deleting(after time.Duration, grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		t := metav1.NewTime(Noon.Add(after))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &t, &grace
	}
}

func TwoContainers(p *corev1.Pod) {
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "app", Image: "app:1"})
}

var HostIP = netip.MustParseAddr("192.0.2.1")

func ExecProbe(command string) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{command}}}}
}

// WithInits puts init containers before web. A name that ends in * is a sidecar.
func WithInits(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			c := corev1.Container{Name: strings.TrimSuffix(name, "*"), Image: "app:1"}
			if strings.HasSuffix(name, "*") {
				always := corev1.ContainerRestartPolicyAlways
				c.RestartPolicy = &always
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
}

func Keys(p plan.Decision) string {
	var keys []string
	for _, a := range p.Actions {
		keys = append(keys, a.Key())
	}
	return strings.Join(keys, " ")
}
