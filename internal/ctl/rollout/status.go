package rollout

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/wait"
)

// Status waits until the new pods of a workload have replaced the old ones. With noWait it prints the progress instead,
// and fails if the rollout is not done. A timeout of 0 means no limit.
func Status(ctx context.Context, s *session.Session, obj api.Object, timeout time.Duration, noWait bool) error {
	name, end := brief.RefOf(obj), ""
	look := func(ctx context.Context) (bool, string, error) {
		now, err := s.API.Get(ctx, client.KeyOf(obj))
		if apierrors.IsNotFound(err) {
			return false, "", exit.Failf(exit.NotFound, "%s was deleted while it was waited for", name)
		}
		if err != nil {
			return false, "", err
		}
		how, done, err := progress(now)
		if err == nil && !done && noWait {
			err = exit.Failf(exit.Failed, "%s is rolling out: %s", name, how)
		}
		end = how
		return done, how, err
	}
	_, err := wait.Until(ctx, s, s.Now(), wait.Awaited{Name: name, Look: look, Timeout: timeout, Late: func(how string, took time.Duration) error {
		return exit.Failf(exit.Failed, "%s is not rolled out after %s (%s); minik8sd ctl why %s %s%s tells more", name, took, how,
			api.KindOf(obj).Singular, obj.GetName(), brief.Namespace(obj.GetNamespace()))
	}})
	if err == nil {
		s.Say("%s is rolled out: %s", name, end)
	}
	return err
}

// progress returns how far a rollout is. It fails if the rollout cannot finish by itself.
func progress(obj api.Object) (how string, done bool, err error) {
	var want, updated, available, all int32
	var generation, observed int64
	switch o := obj.(type) {
	case *appsv1.Deployment:
		for _, c := range o.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
				return "", false, exit.Failf(exit.Failed, "%s has not moved for longer than its progressDeadlineSeconds; minik8sd ctl why deployment %s%s tells why",
					brief.RefOf(o), o.Name, brief.Namespace(o.Namespace))
			}
		}
		if o.Spec.Paused {
			return "", false, exit.Failf(exit.Failed, "%s is paused; minik8sd ctl rollout resume deployment %s%s lets it go on", brief.RefOf(o), o.Name, brief.Namespace(o.Namespace))
		}
		want, updated, available, all = ptr.Deref(o.Spec.Replicas, 1), o.Status.UpdatedReplicas, o.Status.AvailableReplicas, o.Status.Replicas
		generation, observed = o.Generation, o.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		if o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			return "", false, exit.Failf(exit.Failed, "%s replaces its pods only when they are deleted (updateStrategy OnDelete)", brief.RefOf(o))
		}
		s := o.Status
		want, updated, available, all = s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberAvailable, s.DesiredNumberScheduled
		generation, observed = o.Generation, s.ObservedGeneration
	}
	if observed < generation {
		return "its controller has yet to see the change", false, nil
	}
	how = fmt.Sprintf("%d of %d pods are new, %d available", updated, want, available)
	if old := all - updated; old > 0 {
		how += fmt.Sprintf(", %d old ones are left", old)
	}
	return how, updated >= want && available >= want && all <= updated, nil
}
