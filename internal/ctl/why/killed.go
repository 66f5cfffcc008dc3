package why

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/ctl/brief"
)

// killing is the reason why the kubelet killed a container that would have kept running.
type killing struct {
	why    string // "its liveness probe failed: HTTP probe failed with statuscode: 500"
	advice string
}

// killers are the reasons for which the kubelet kills a container. It reports each twice: in a warning with the cause,
// and in the event Killing, which says that the container was killed. A single failure does not kill.
var killers = []struct {
	killing         string // text in the event Killing, in lower case
	reason, opening string // the warning's reason, and the start of its message
	why, advice     string
}{
	{"failed liveness probe", "Unhealthy", "Liveness probe ", "its liveness probe failed",
		"see that the container answers its livenessProbe in time, or give it more: timeoutSeconds, failureThreshold, a startupProbe"},
	{"failed startup probe", "Unhealthy", "Startup probe ", "its startup probe failed",
		"see that the container answers its startupProbe once it is up, or give it longer: failureThreshold times periodSeconds"},
	{"poststarthook", "FailedPostStartHook", "", "its postStart hook failed", hookAdvice},
	{"poststart hook", "FailedPostStartHook", "", "its postStart hook failed", hookAdvice},
}

const hookAdvice = "mend the container's lifecycle.postStart: the container is ended when the hook fails"

// clockSlack is how far the times of events may be off: they are in whole seconds and sent a little later.
const clockSlack = 2 * time.Second

// killed returns what ended a container's run t from outside; false if it ended by itself, as far as events show.
func (s *situation) killed(container string, t *corev1.ContainerStateTerminated) (killing, bool) {
	for i := len(s.events) - 1; i >= 0; i-- {
		e := s.events[i]
		if e.Reason != "Killing" || !concerns(e, container) || !within(brief.EventTime(e), t) {
			continue
		}
		for _, k := range killers {
			if strings.Contains(strings.ToLower(e.Message), k.killing) {
				return killing{k.why + s.complaint(container, k.reason, k.opening), k.advice}, true
			}
		}
	}
	return killing{}, false
}

// complaint returns the newest warning of a kind about a container, worded as the end of a sentence.
func (s *situation) complaint(container, reason, opening string) string {
	for i := len(s.events) - 1; i >= 0; i-- {
		e := s.events[i]
		if e.Reason == reason && concerns(e, container) && strings.HasPrefix(e.Message, opening) {
			_, text, _ := strings.Cut(e.Message, ": ")
			return ": " + brief.Clip(strings.TrimSpace(text), 300)
		}
	}
	return ""
}

// concerns reports whether an event of a pod is about one container. The event's field path tells, as in
// "spec.containers{web}".
func concerns(e *corev1.Event, container string) bool {
	return strings.HasSuffix(e.InvolvedObject.FieldPath, "{"+container+"}")
}

func within(at time.Time, t *corev1.ContainerStateTerminated) bool {
	return !at.Before(t.StartedAt.Add(-clockSlack)) && !at.After(t.FinishedAt.Add(clockSlack))
}
