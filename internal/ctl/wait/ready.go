package wait

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Ready waits until the pods among objects are ready or have finished. The timeout is for all of them together; 0 means
// no limit. It fails if a pod fails for good or the time is over.
func Ready(ctx context.Context, s *session.Session, objects []api.Object, timeout time.Duration) error {
	start := s.Now()
	for _, obj := range objects {
		if pod, ok := obj.(*corev1.Pod); ok {
			if err := ready(ctx, s, pod, start, timeout); err != nil {
				return err
			}
		}
	}
	return nil
}

func ready(ctx context.Context, s *session.Session, pod *corev1.Pod, start time.Time, timeout time.Duration) error {
	key := client.Key{Kind: api.Pods, Namespace: pod.Namespace, Name: pod.Name}
	name := brief.Ref(api.Pods, pod.Name)
	more := "minik8sd ctl why pod " + pod.Name + brief.Namespace(pod.Namespace) + " tells more"
	how := "ready"
	look := func(ctx context.Context) (bool, string, error) {
		now, err := client.Get[*corev1.Pod](ctx, s.API, key)
		if apierrors.IsNotFound(err) {
			return false, "", exit.Failf(exit.NotFound, "%s was deleted while it was waited for", name)
		}
		if err != nil {
			return false, "", err
		}
		done, bad := brief.Settled(now)
		if bad {
			return false, "", exit.Failf(exit.Failed, "%s has failed; %s", name, more)
		}
		if now.Status.Phase == corev1.PodSucceeded {
			how = "completed"
		}
		if done {
			return true, "", nil
		}
		return false, stateOf(ctx, s, now), nil
	}
	took, err := Until(ctx, s, start, Awaited{Name: name, Look: look, Timeout: timeout, Late: func(state string, took time.Duration) error {
		return exit.Failf(exit.Failed, "%s is not ready after %s (%s); %s", name, took, state, more)
	}})
	if err != nil {
		return err
	}
	s.Say("%s %s after %s", name, how, took.Round(time.Second))
	return nil
}

// stateOf returns a pod's state with the last message about it, such as the progress of a pull.
func stateOf(ctx context.Context, s *session.Session, pod *corev1.Pod) string {
	state := table.PodStatus(pod)
	events, err := brief.EventsOf(ctx, s.API, pod)
	if err != nil || len(events) == 0 || events[len(events)-1].Message == "" {
		return state
	}
	return state + ": " + events[len(events)-1].Message
}
