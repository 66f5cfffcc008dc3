package ctl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
	"minik8s/internal/client"
)

// template is the label by which the pods of a workload's newest template are told from older ones, that
// a rollout has yet to replace. Without a key, nothing is known and every pod counts as new.
type template struct{ key, value string }

func (t template) made(pod *corev1.Pod) bool { return t.key == "" || pod.Labels[t.key] == t.value }

// templateOf finds the label of a workload's newest template in what keeps its history.
func (s *session) templateOf(ctx context.Context, obj api.Object, in client.ListOptions) template {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		if sets, _, err := client.All[*appsv1.ReplicaSet](ctx, s.api, api.ReplicaSets, in); err == nil {
			return deploymentTemplate(o, sets)
		}
	case *appsv1.DaemonSet:
		if history, _, err := client.All[*appsv1.ControllerRevision](ctx, s.api, api.ControllerRevisions, in); err == nil {
			return daemonSetTemplate(o, history)
		}
	}
	return template{}
}

// deploymentTemplate is the hash of the set with the deployment's own template; while there is none, no
// pod is new.
func deploymentTemplate(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) template {
	const key = appsv1.DefaultDeploymentUniqueLabelKey
	for _, set := range sets {
		theirs := set.Spec.Template.DeepCopy()
		delete(theirs.Labels, key)
		if metav1.IsControlledBy(set, d) && apiequality.Semantic.DeepEqual(theirs, &d.Spec.Template) {
			return template{key, set.Labels[key]}
		}
	}
	return template{key, "none"}
}

func daemonSetTemplate(ds *appsv1.DaemonSet, history []*appsv1.ControllerRevision) template {
	const key = appsv1.DefaultDaemonSetUniqueLabelKey
	var newest *appsv1.ControllerRevision
	for _, r := range history {
		if metav1.IsControlledBy(r, ds) && (newest == nil || r.Revision > newest.Revision) {
			newest = r
		}
	}
	if newest == nil {
		return template{key, "none"}
	}
	return template{key, newest.Labels[key]}
}

// rollout counts the pods that stay: those of the newest template which are ready, and those of older ones.
func (s *situation) rollout() (ready, old int32) {
	for _, p := range s.pods {
		switch {
		case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded:
		case !s.template.made(p):
			old++
		default:
			if done, _ := settled(p); done {
				ready++
			}
		}
	}
	return ready, old
}

// deployment judges the pods of the newest template only: old ones that are ready hide that a rollout is stuck.
func (s *situation) deployment(d *appsv1.Deployment) workload {
	st := &d.Status
	w := workload{selector: d.Spec.Selector, want: orOne(d.Spec.Replicas)}
	old := st.Replicas - st.UpdatedReplicas
	w.ready = max(0, st.ReadyReplicas-old) // as if every old one were ready
	if s.template.key != "" {
		w.ready, old = s.rollout()
	}
	w.behind(d.Generation, st.ObservedGeneration)
	if old > 0 {
		w.rolling = true
		w.fault("pods of an older template that are still there: %d; each goes when enough new ones are available", old)
	}
	if st.UnavailableReplicas > 0 && w.ready >= w.want {
		w.fault("pods that are not available: %d; a pod is when it has been ready for minReadySeconds (%d)", st.UnavailableReplicas, d.Spec.MinReadySeconds)
	}
	for _, c := range st.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse || c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			w.bad = true // its message is among the conditions
		}
	}
	if d.Spec.Paused {
		w.note("it is paused: a change of its template waits until it is resumed")
		w.advice = append(w.advice, "set spec.paused to false in its manifest, then: minik8sd ctl apply -f FILE")
	}
	return w
}

// daemonSet does the same with the pods of a daemon set, which replaces old ones by itself unless it is
// told to leave them alone.
func (s *situation) daemonSet(ds *appsv1.DaemonSet) workload {
	st := &ds.Status
	w := workload{selector: ds.Spec.Selector, want: st.DesiredNumberScheduled, ready: st.NumberReady}
	w.behind(ds.Generation, st.ObservedGeneration)
	old := st.CurrentNumberScheduled - st.UpdatedNumberScheduled
	if s.template.key != "" {
		_, old = s.rollout()
	}
	onDelete := ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	switch {
	case old > 0 && onDelete:
		w.note("pods of an older template: %d; its updateStrategy is OnDelete, so each stays until somebody deletes it", old)
	case old > 0:
		w.rolling = true
		w.ready = max(0, w.ready-old)
		if s.template.key != "" {
			w.ready, _ = s.rollout()
		}
		w.fault("pods of an older template that are still there: %d; they are replaced node by node", old)
	}
	if st.NumberUnavailable > 0 && w.ready >= w.want {
		w.fault("nodes without an available pod: %d; a pod is when it has been ready for minReadySeconds (%d)", st.NumberUnavailable, ds.Spec.MinReadySeconds)
	}
	if st.NumberMisscheduled > 0 {
		w.note("nodes that have a pod of it and should not: %d", st.NumberMisscheduled)
	}
	if w.want == 0 && st.ObservedGeneration >= ds.Generation {
		w.head = "has no node to run on"
		s.noNode(&w, &ds.Spec.Template.Spec)
	}
	return w
}

// noNode says of each node why a daemon set does not run there.
func (s *situation) noNode(w *workload, spec *corev1.PodSpec) {
	if len(s.nodes) == 0 {
		w.fault("there is no node at all")
	}
	var unlike []string
	for _, n := range s.nodes {
		if !placement.Selects(spec, n) {
			unlike = append(unlike, n.Name)
			continue
		}
		taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
			return strings.HasPrefix(t.Key, "node.kubernetes.io/") // a daemon set's pods tolerate these
		})
		if i := placement.Untolerated(spec.Tolerations, taints); i >= 0 {
			w.fault("node %s has the taint %s, which its pods do not tolerate", n.Name, taints[i].ToString())
		}
	}
	if len(unlike) > 0 {
		w.fault("nodes that its nodeSelector or node affinity does not take: %s", clip(strings.Join(unlike, ", "), 300))
	}
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if len(unlike) > 0 {
			w.advice = append(w.advice, fmt.Sprintf("if it should run there: minik8sd ctl label nodes %s %s=%s", unlike[0], key, spec.NodeSelector[key]))
		}
	}
	w.bad = true
}
