package ctl

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
)

// sleep waits a moment; false means that the command was interrupted.
func (p *program) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// waitReady waits until the pods among objects are ready, with a line on how it goes.
func (s *session) waitReady(ctx context.Context, objects []api.Object, timeout time.Duration) error {
	start := s.now()
	defer s.endProgress()
	for _, obj := range objects {
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			continue
		}
		if err := s.waitPod(ctx, pod, start, timeout); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) waitPod(ctx context.Context, pod *corev1.Pod, start time.Time, timeout time.Duration) error {
	key := client.Key{Kind: api.Pods, Namespace: pod.Namespace, Name: pod.Name}
	said := ""
	for {
		now, err := client.Get[*corev1.Pod](ctx, s.api, key)
		if apierrors.IsNotFound(err) {
			return failf(codeNotFound, "%s was deleted while it was waited for", brief.Ref(api.Pods, pod.Name))
		}
		if err != nil {
			return err
		}
		done, bad := brief.Settled(now)
		if bad {
			return failf(codeFailed, "%s has failed; minik8sd ctl why pod %s%s tells more", brief.Ref(api.Pods, pod.Name), pod.Name, brief.Namespace(pod.Namespace))
		}
		took := s.now().Sub(start).Round(time.Second)
		if done {
			s.endProgress()
			s.say("%s %s after %s", brief.Ref(api.Pods, pod.Name), map[bool]string{true: "completed", false: "ready"}[now.Status.Phase == corev1.PodSucceeded], took)
			return nil
		}
		state := table.PodStatus(now)
		if detail := s.lastEvent(ctx, now); detail != "" {
			state += ": " + detail
		}
		if timeout > 0 && s.now().Sub(start) > timeout {
			return failf(codeFailed, "%s is not ready after %s (%s); minik8sd ctl why pod %s%s tells more",
				brief.Ref(api.Pods, pod.Name), took, state, pod.Name, brief.Namespace(pod.Namespace))
		}
		if s.errTTY {
			s.progress("%s: %s (%s)", brief.Ref(api.Pods, pod.Name), brief.Clip(state, 100), took)
		} else if state != said {
			s.note("%s: %s", brief.Ref(api.Pods, pod.Name), state)
			said = state
		}
		if !s.sleep(ctx, s.pause) {
			return ctx.Err()
		}
	}
}

// lastEvent is what was last said about a pod: among others how far a pull has come.
func (s *session) lastEvent(ctx context.Context, obj api.Object) string {
	events, err := brief.EventsOf(ctx, s.api, obj)
	if err != nil || len(events) == 0 {
		return ""
	}
	return events[len(events)-1].Message
}

// patience is after how long a deletion that takes its time is explained.
const patience = 5 * time.Second

// waitGone waits until an object is gone, or another has taken its name. An empty uid stands for
// whichever object has the name; a timeout of 0 waits for ever.
func (s *session) waitGone(ctx context.Context, key client.Key, uid types.UID, timeout time.Duration) error {
	start := s.now()
	defer s.endProgress()
	said := ""
	for {
		obj, err := s.api.Get(ctx, key)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case uid != "" && obj.GetUID() != uid:
			return nil
		}
		took := s.now().Sub(start)
		if timeout > 0 && took > timeout {
			return failf(codeFailed, "%s is still there after %s; minik8sd ctl why %s %s%s tells why",
				brief.Ref(key.Kind, key.Name), took.Round(time.Second), key.Kind.Singular, key.Name, brief.Namespace(key.Namespace))
		}
		if took > patience {
			if state := leaving(obj); s.errTTY {
				s.progress("%s: %s (%s; Ctrl-C stops waiting, not deleting)", brief.Ref(key.Kind, key.Name), state, took.Round(time.Second))
			} else if state != said { // once, for those who read it later
				s.note("still waiting for %s: %s; minik8sd ctl why %s %s%s tells more", brief.Ref(key.Kind, key.Name), state,
					key.Kind.Singular, key.Name, brief.Namespace(key.Namespace))
				said = state
			}
		}
		if !s.sleep(ctx, s.pause) {
			return ctx.Err()
		}
	}
}

// leaving is what a deletion waits for.
func leaving(obj api.Object) string {
	if f := obj.GetFinalizers(); len(f) > 0 {
		return "waiting for " + strings.Join(f, ", ")
	}
	if g := obj.GetDeletionGracePeriodSeconds(); g != nil && *g > 0 {
		return "its containers have " + (time.Duration(*g) * time.Second).String() + " to end"
	}
	return "terminating"
}
