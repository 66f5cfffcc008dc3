package rollout

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/change"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Kinds are the kinds whose pods are replaced step by step when their template changes.
var Kinds = []*api.Kind{api.Deployments, api.DaemonSets}

// restartedAt is the annotation that is set to restart pods, also by kubectl.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// Pause makes a Deployment wait with changes of its template.
func Pause(ctx context.Context, s *session.Session, obj api.Object) error {
	return setPaused(ctx, s, obj, true, "paused")
}

// Resume lets a paused Deployment carry out its changes.
func Resume(ctx context.Context, s *session.Session, obj api.Object) error {
	return setPaused(ctx, s, obj, false, "resumed")
}

func setPaused(ctx context.Context, s *session.Session, obj api.Object, on bool, done string) error {
	if obj.(*appsv1.Deployment).Spec.Paused == on {
		s.Say("%s is %s already", brief.RefOf(obj), done)
		return nil
	}
	if err := change.Merge(ctx, s, obj, map[string]any{"spec": map[string]any{"paused": on}}); err != nil {
		return err
	}
	s.Say("%s %s", brief.RefOf(obj), done)
	return nil
}

// Restart replaces all pods of a workload with new pods of the same template.
func Restart(ctx context.Context, s *session.Session, obj api.Object) error {
	if err := notPaused(obj); err != nil {
		return err
	}
	at := map[string]any{restartedAt: s.Now().Format(time.RFC3339)}
	restarted := map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": at}}}}
	if err := change.Merge(ctx, s, obj, restarted); err != nil {
		return err
	}
	s.Say("%s restarted", brief.RefOf(obj))
	return nil
}

// notPaused returns an error if a Deployment is paused and would not carry out a new template.
func notPaused(obj api.Object) error {
	if d, ok := obj.(*appsv1.Deployment); ok && d.Spec.Paused {
		return exit.Failf(exit.Failed, "%s is paused; resume it first: minik8sd ctl rollout resume deployment %s%s", brief.RefOf(obj), d.Name, brief.Namespace(d.Namespace))
	}
	return nil
}
