package gpu

import (
	"context"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
)

// report writes into a cluster's status whether it can be reached.
func (g *Controller) report(ctx context.Context, namespace, name string, err error, answer *error) {
	obj, ok := g.clusters.Get(namespace, name)
	if !ok || ctx.Err() != nil || !report(ctx, g.client, g.log, obj, err, answer) {
		return
	}
	if p := problem(err); p != nil && (p.Reason == minik8s.SlurmHostKeyChanged || p.Reason == minik8s.SlurmLoginNeeded) {
		g.record.Event(obj, corev1.EventTypeWarning, p.Reason, "%s", p.Message)
	}
}

// reportOf is report, of a login that may be a job's own: that this one is not let in says nothing of the cluster, which others
// reach.
func (g *Controller) reportOf(ctx context.Context, at place, err error, answer *error) {
	if p := problem(err); p != nil && at.secret != "" && p.Reason != minik8s.SlurmUnreachable && p.Reason != minik8s.SlurmHostKeyChanged &&
		p.Reason != minik8s.SlurmHostKeyUnknown && p.Reason != minik8s.SlurmCommandsMissing {
		if obj, ok := g.clusters.Get(at.namespace, at.cluster); !ok || obj.Spec.LoginSecret != at.secret {
			return
		}
	}
	g.report(ctx, at.namespace, at.cluster, err, answer)
}

// report writes what an attempt to use a cluster means for its status: nil is a connection that stands. Answer is what came of the last
// question to Slurm over it, if there was one. It returns false if the status says so already.
func report(ctx context.Context, c client.Interface, log *slog.Logger, obj *minik8s.SlurmCluster, err error, answer *error) bool {
	now := metav1.Condition{Type: minik8s.SlurmConnected, Status: metav1.ConditionTrue, Reason: minik8s.SlurmConnectionStands, LastTransitionTime: metav1.NewTime(clock.Now())}
	var keys []minik8s.PresentedKey
	if p := problem(err); p != nil {
		now.Status, now.Reason, now.Message = metav1.ConditionFalse, p.Reason, p.Message
		if p.Key != nil {
			keys = []minik8s.PresentedKey{*p.Key}
		}
	}
	upd := obj.DeepCopy()
	changed := apimeta.SetStatusCondition(&upd.Status.Conditions, now)
	switch {
	case answer == nil:
	case *answer != nil:
		changed = apimeta.SetStatusCondition(&upd.Status.Conditions, metav1.Condition{Type: minik8s.SlurmAnswers, Status: metav1.ConditionFalse,
			Reason: minik8s.SlurmSilent, Message: (*answer).Error(), LastTransitionTime: now.LastTransitionTime}) || changed
	default:
		changed = apimeta.RemoveStatusCondition(&upd.Status.Conditions, minik8s.SlurmAnswers) || changed
	}
	if !slices.Equal(upd.Status.PresentedKeys, keys) {
		upd.Status.PresentedKeys, changed = keys, true
	}
	if !changed {
		return false
	}
	if _, err := c.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource}); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		log.Warn("the status of a SlurmCluster cannot be written", "cluster", obj.Namespace+"/"+obj.Name, "error", err)
	}
	return true
}

// connected reports whether a cluster's status says that the connection stands.
func connected(c *minik8s.SlurmCluster) bool {
	return apimeta.IsStatusConditionTrue(c.Status.Conditions, minik8s.SlurmConnected)
}
