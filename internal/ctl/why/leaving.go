package why

import (
	"context"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
)

// mostNamed is how many objects a sentence names. More would not fit on the screen.
const mostNamed = 3

// explainLeaving explains what a deletion waits for.
func (s *situation) explainLeaving() Explanation {
	at := s.obj.GetDeletionTimestamp()
	v := Explanation{Head: s.name() + " is being deleted"}
	if at != nil && s.now.After(at.Time) {
		v.Head = s.name() + " is being deleted, and should be gone by now"
		v.because("it was due %s", s.ago(at.Time))
	} else if at != nil {
		v.because("it has until %s (%s more) to end", at.UTC().Format(time.RFC3339), duration.HumanDuration(at.Sub(s.now)))
	}
	if ns, ok := s.obj.(*corev1.Namespace); ok {
		s.namespaceLeaving(&v, ns)
	}
	s.heldBack(&v, s.obj)
	return v
}

// workloadLeaving adds the pods. A workload that is deleted in the foreground waits for them.
func (s *situation) workloadLeaving() Explanation {
	v := s.explainLeaving()
	if worst := s.blamed(); worst != nil {
		v.because("pods of it that are still there: %d", len(s.pods))
		v.try("why pod %s%s", worst.Name, brief.Namespace(worst.Namespace))
	}
	return v
}

// removers says who removes the finalizers that the system sets.
var removers = map[string]string{
	metav1.FinalizerDeleteDependents: "the garbage collector takes it away when what the object owns is gone",
	metav1.FinalizerOrphanDependents: "the garbage collector takes it away when it has released what the object owns",
	batchv1.JobTrackingFinalizer:     "the job controller takes it away when it has counted the pod",
}

// remover returns who should remove a finalizer. For finalizers that are not the system's only the name is known.
func remover(finalizer string) string {
	if who := removers[finalizer]; who != "" {
		return who
	}
	if domain, _, ok := strings.Cut(finalizer, "/"); ok {
		return "whatever works under the name " + domain + " must take it away; does it run?"
	}
	return "whoever put it there must take it away"
}

// heldBack names an object's finalizers, and how to remove them by hand.
func (s *situation) heldBack(v *Explanation, obj api.Object) {
	finalizers := obj.GetFinalizers()
	if len(finalizers) == 0 {
		return
	}
	kind := api.KindOf(obj)
	for _, f := range finalizers {
		v.because("%s waits for its finalizer %s: %s", brief.Ref(kind, obj.GetName()), f, remover(f))
	}
	v.try("describe %s %s%s", kind.Singular, obj.GetName(), brief.Namespace(obj.GetNamespace()))
	if at := obj.GetDeletionTimestamp(); at == nil || !s.now.After(at.Time) {
		return // not late yet
	}
	// Do not suggest delete --force: it shortens the grace period, but finalizers stay.
	v.advise(`last of all, by hand, since delete --force takes no finalizer away; what it waits for is then never done: `+
		`kubectl patch %s %s%s --type=merge -p '{"metadata":{"finalizers":null}}'`, kind.Singular, obj.GetName(), brief.Namespace(obj.GetNamespace()))
}

// namespaceLeaving explains what is left in a namespace. Its controller says how much; the objects say what holds them.
func (s *situation) namespaceLeaving(v *Explanation, ns *corev1.Namespace) {
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			v.because("%s: %s", c.Type, brief.Clip(c.Message, 300))
		}
	}
	for i, obj := range s.held {
		if i == mostNamed {
			v.because("and %d more objects are held by finalizers", len(s.held)-i)
			break
		}
		s.heldBack(v, obj)
	}
	if len(s.held) == 0 {
		v.try("get all -n %s", ns.Name)
	}
}

// heldIn returns the objects of a namespace that are being deleted and have a finalizer.
func (l *look) heldIn(ctx context.Context, namespace string) []api.Object {
	var held []api.Object
	kinds, err := l.api.Kinds(ctx)
	if err != nil {
		kinds = api.Kinds
	}
	for _, kind := range kinds {
		if !kind.Namespaced || kind == api.Events {
			continue
		}
		list, err := l.api.List(ctx, kind, client.ListOptions{Namespace: namespace})
		if err != nil {
			continue
		}
		for _, obj := range list.Items {
			if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) > 0 {
				held = append(held, obj)
			}
		}
	}
	return held
}

func (s *situation) podLeaving(pod *corev1.Pod) Explanation {
	v := s.explainLeaving()
	node := s.node(pod.Spec.NodeName)
	switch {
	case pod.Spec.NodeName == "" || allEnded(pod) && len(pod.Finalizers) > 0:
		// Nothing of it runs, so force would change nothing.
		v.try("get %s -w", s.args())
		return v
	case node == nil:
		v.because("its node %s is not there: nobody can say that its containers have ended", pod.Spec.NodeName)
	case !isReady(node):
		v.because("its node %s is not ready: its kubelet cannot say that the containers have ended", node.Name)
		v.try("why node %s", node.Name)
	default:
		v.because("its node's kubelet is ending the containers")
	}
	if s.now.After(pod.DeletionTimestamp.Time) {
		v.try("delete %s --force", s.args())
	} else {
		v.try("get %s -w", s.args())
	}
	return v
}

// allEnded reports whether no container of a pod runs any more, according to its status.
func allEnded(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated == nil {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}
