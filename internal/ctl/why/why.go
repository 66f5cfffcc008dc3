package why

import (
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/placement"
	"minik8s/internal/ctl/brief"
)

// situation is everything that explain knows.
type situation struct {
	kind   *api.Kind
	obj    api.Object
	events []*corev1.Event // the newest last
	nodes  []*corev1.Node
	logs   map[string]string // by container: logs of the pod, or of a workload's blamed pod
	now    time.Time

	// For a workload:
	pods     []*corev1.Pod
	template template
	told     []*corev1.Event // about the blamed pod

	// placed are the cluster's pods that have a node, if they may be the reason why another pod has none.
	placed []*corev1.Pod
	// namespaces are the labels of namespaces, if a term of these pods selects by them.
	namespaces placement.NamespaceLabels
	// service is what explains a Service.
	service *serviceFacts
	// function is what explains a Function.
	function *functionFacts
	// held are the objects with finalizers in a namespace that is being deleted.
	held []api.Object
}

// Explanation is the result for the user.
type Explanation struct {
	// Head describes the object's state in one line. Good says whether that state is well.
	Head string
	Good bool
	// Facts are what there is, under headings.
	Facts []Section
	// Why has the reasons, one per line.
	Why []string
	// Log has the last lines of a crashed container, and LogHead says which one.
	LogHead string
	Log     []string
	// Next says what to do: commands to type, or steps in words.
	Next []string
}

// Section is some lines under a heading.
type Section struct {
	Head  string
	Lines []string
}

// fact adds a section, unless it is empty.
func (v *Explanation) fact(head string, lines []string) {
	if len(lines) > 0 {
		v.Facts = append(v.Facts, Section{head, lines})
	}
}

// logTail is how many lines of a crashed container's log fit on the screen with everything else.
const logTail = 10

// explain says why an object is in its state, and what to do. It sends no requests: everything is in s.
func explain(s situation) Explanation {
	switch obj := s.obj.(type) {
	case *corev1.Pod:
		v := s.explainPod(obj)
		s.filtered(&v, obj)
		return v
	case *corev1.Node:
		return s.explainNode(obj)
	case *autoscalingv2.HorizontalPodAutoscaler:
		if obj.DeletionTimestamp == nil {
			return s.explainAutoscaler(obj)
		}
	case *minik8s.Function:
		if s.function != nil && obj.DeletionTimestamp == nil {
			return s.explainFunction(obj)
		}
	case *corev1.Service:
		if s.service != nil && obj.DeletionTimestamp == nil {
			return s.explainService(obj)
		}
	}
	if w, ok := s.workload(); ok {
		return s.explainWorkload(w)
	}
	return s.explainOther()
}

func (v *Explanation) because(format string, args ...any) {
	v.Why = append(v.Why, fmt.Sprintf(format, args...))
}

// try adds a command to type next, with "minik8sd ctl" in front.
func (v *Explanation) try(format string, args ...any) {
	line := "minik8sd ctl " + fmt.Sprintf(format, args...)
	for _, l := range v.Next {
		if l == line {
			return
		}
	}
	v.Next = append(v.Next, line)
}

// advise adds a step that is not a command of ctl.
func (v *Explanation) advise(format string, args ...any) {
	v.Next = append(v.Next, fmt.Sprintf(format, args...))
}

// name is the object's name in messages: "pod/web".
func (s *situation) name() string { return brief.Ref(s.kind, s.obj.GetName()) }

// args returns the arguments that name the object in a command: "pod web -n x".
func (s *situation) args() string {
	return s.kind.Singular + " " + s.obj.GetName() + brief.Namespace(s.obj.GetNamespace())
}

// lastWarning returns the newest warning with one of the reasons; without reasons, the newest of all.
func (s *situation) lastWarning(reasons ...string) *corev1.Event {
	for i := len(s.events) - 1; i >= 0; i-- {
		e := s.events[i]
		if e.Type != corev1.EventTypeWarning {
			continue
		}
		if len(reasons) == 0 {
			return e
		}
		for _, r := range reasons {
			if e.Reason == r {
				return e
			}
		}
	}
	return nil
}

func (s *situation) node(name string) *corev1.Node {
	for _, n := range s.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func (s *situation) ago(t time.Time) string { return duration.HumanDuration(s.now.Sub(t)) + " ago" }

// explainOther uses what every kind has: a deletion, conditions, warnings.
func (s *situation) explainOther() Explanation {
	v := Explanation{Head: s.name() + " is there", Good: true}
	if s.obj.GetDeletionTimestamp() != nil {
		return s.explainLeaving()
	}
	for _, c := range conditionsOf(s.obj) {
		if c.Status == metav1.ConditionTrue || c.Type == "" {
			continue
		}
		v.Good = false
		v.Head = fmt.Sprintf("%s is not %s", s.name(), c.Type)
		v.because("%s", strings.TrimSpace(string(c.Status)+" "+c.Reason+" "+c.Message))
	}
	if e := s.lastWarning(); e != nil {
		v.because("%s, %s: %s", e.Reason, s.ago(brief.EventTime(e)), brief.Clip(e.Message, 300))
	}
	v.try("describe %s", s.args())
	return v
}
