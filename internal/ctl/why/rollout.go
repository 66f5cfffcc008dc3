package why

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
)

// template is the label that distinguishes pods of a workload's newest template from older ones, which a rollout still
// has to replace. Without a key nothing is known, and every pod counts as new.
type template struct{ key, value string }

// noTemplate is the label's value as long as nothing was created from the newest template. It cannot be a hash.
const noTemplate = "none"

func (t template) made(pod *corev1.Pod) bool { return t.key == "" || pod.Labels[t.key] == t.value }

// templateOf finds the label of a workload's newest template in the objects that keep its history.
func (l *look) templateOf(ctx context.Context, obj api.Object, in client.ListOptions) template {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		if sets, _, err := client.All[*appsv1.ReplicaSet](ctx, l.api, api.ReplicaSets, in); err == nil {
			return deploymentTemplate(o, sets)
		}
	case *appsv1.DaemonSet:
		if history, _, err := client.All[*appsv1.ControllerRevision](ctx, l.api, api.ControllerRevisions, in); err == nil {
			return daemonSetTemplate(o, history)
		}
	}
	return template{}
}

// deploymentTemplate returns the hash of the ReplicaSet with the deployment's present template. If there is none, no
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
	return template{key, noTemplate}
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
		return template{key, noTemplate}
	}
	return template{key, newest.Labels[key]}
}

// progress counts the pods that are not being deleted, of the newest template and of older ones.
type progress struct{ fresh, ready, old, oldReady int32 }

func (s *situation) progress() progress {
	var n progress
	for _, p := range s.pods {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		all, ready := &n.fresh, &n.ready
		if !s.template.made(p) {
			all, ready = &n.old, &n.oldReady
		}
		*all++
		if done, _ := brief.Settled(p); done {
			*ready++
		}
	}
	return n
}

// deployment looks only at pods of the newest template, because ready old pods would hide a stuck rollout.
func (s *situation) deployment(d *appsv1.Deployment) workload {
	st := &d.Status
	w := workload{selector: d.Spec.Selector, want: ptr.Deref(d.Spec.Replicas, 1)}
	n := progress{fresh: st.UpdatedReplicas, old: st.Replicas - st.UpdatedReplicas}
	n.oldReady = min(n.old, st.ReadyReplicas) // assumes that as many old ones are ready as possible
	n.ready = st.ReadyReplicas - n.oldReady
	if s.template.key != "" {
		n = s.progress()
	}
	w.ready = n.ready
	w.behind(d.Generation, st.ObservedGeneration)
	if d.Spec.Paused {
		s.paused(&w, n)
	} else if n.old > 0 {
		w.rolling(n, "each goes when enough new ones are available")
	}
	if st.UnavailableReplicas > 0 && w.ready >= w.want {
		w.fault("pods that are not available: %d; a pod is when it has been ready for minReadySeconds (%d)", st.UnavailableReplicas, d.Spec.MinReadySeconds)
	}
	late := false
	for _, c := range st.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse || c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			w.bad = true // the message is among the conditions
			late = late || c.Type == appsv1.DeploymentProgressing
		}
	}
	if !d.Spec.Paused && n.old > 0 && (late || s.newestStuck()) {
		w.commands = append(w.commands, "rollout undo "+s.args())
	}
	return w
}

// paused explains what a paused deployment holds back: nothing, a template that has no pods yet, or the rest of a
// rollout. The number of pods still follows its replicas.
func (s *situation) paused(w *workload, n progress) {
	switch {
	case s.template.key != "" && s.template.value == noTemplate:
		w.head = fmt.Sprintf("is paused; a changed template is not rolled out (%d of %d pods of the old one ready)", n.oldReady, w.want)
		w.fault("it is paused, and its template has changed since: its %d pods are of an older one until it is resumed", n.old)
	case n.old > 0:
		w.rolling(n, "they stay until it is resumed")
		w.note("it is paused in the middle of it")
	default:
		w.note("it is paused; a changed template is not rolled out until it is resumed")
	}
	w.commands = append(w.commands, "rollout resume "+s.args())
}

// newestStuck reports whether the blamed pod has the newest template and does more than wait.
func (s *situation) newestStuck() bool {
	worst := s.blamed()
	return worst != nil && worst.DeletionTimestamp == nil && s.template.made(worst) && (stuck(worst) || worst.Spec.NodeName == "")
}

// daemonSet does the same for a daemon set. It replaces old pods by itself, unless its strategy is OnDelete.
func (s *situation) daemonSet(ds *appsv1.DaemonSet) workload {
	st := &ds.Status
	w := workload{selector: ds.Spec.Selector, want: st.DesiredNumberScheduled, ready: st.NumberReady}
	w.behind(ds.Generation, st.ObservedGeneration)
	n := progress{fresh: st.UpdatedNumberScheduled, old: st.CurrentNumberScheduled - st.UpdatedNumberScheduled}
	n.oldReady = min(n.old, st.NumberReady)
	n.ready = st.NumberReady - n.oldReady
	if s.template.key != "" {
		n = s.progress()
	}
	switch onDelete := ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType; {
	case n.old > 0 && onDelete:
		s.outOfDate(&w, n.old)
	case n.old > 0:
		w.ready = n.ready
		w.rolling(n, "they are replaced node by node")
		if s.newestStuck() {
			w.commands = append(w.commands, "rollout undo "+s.args())
		}
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

// outOfDate names the old pods that their daemon set does not replace.
func (s *situation) outOfDate(w *workload, old int32) {
	if old == 1 {
		w.note("1 pod has the old template; the updateStrategy is OnDelete: delete it, and one of the new template takes its place")
	} else {
		w.note("%d pods have the old template; the updateStrategy is OnDelete: delete them one by one, and each gets a successor of the new template", old)
	}
	for _, p := range s.pods {
		if p.DeletionTimestamp == nil && !s.template.made(p) {
			w.commands = append(w.commands, "delete pod "+p.Name+brief.Namespace(p.Namespace))
			return // the next call names the next pod: they are best deleted one by one
		}
	}
}

// noNode explains for each node why a daemon set does not run there.
func (s *situation) noNode(w *workload, spec *corev1.PodSpec) {
	if len(s.nodes) == 0 {
		w.fault("there is no node at all")
	}
	nodes := s.nodes
	if name := spec.NodeName; name != "" { // it wants this one alone
		n := s.node(name)
		if n == nil {
			w.fault("its pods name the node %s (spec.nodeName), and there is no such node", name)
			w.bad = true
			return
		}
		nodes = []*corev1.Node{n}
	}
	var unlike []string
	for _, n := range nodes {
		if !placement.Selects(spec, n) {
			unlike = append(unlike, n.Name)
			continue
		}
		if i := placement.Untolerated(placement.DaemonTolerations(spec), n.Spec.Taints); i >= 0 {
			taint := &n.Spec.Taints[i]
			w.fault("node %s has the taint %s, which its pods do not tolerate", n.Name, taint.ToString())
			w.advice = append(w.advice, tolerance(n.Name, taint))
			w.commands = append(w.commands, "describe node "+n.Name)
		}
	}
	if len(unlike) > 0 {
		w.fault("%s", noMatch(len(unlike) == len(nodes), askedOfNode(spec), someOf(unlike, len(unlike))))
		n := s.node(unlike[0])
		if isReady(n) && !n.Spec.Unschedulable && placement.Untolerated(spec.Tolerations, n.Spec.Taints) < 0 {
			if labels := lacking(spec, n); labels != nil {
				w.commands = append(w.commands, fmt.Sprintf("label nodes %s %s", n.Name, strings.Join(setting(n, labels), " ")))
			}
		}
	}
	w.bad = true
}
