package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Which pods a term selects, for an owner in the namespace default with the labels app=web, hash=7.
func TestTermSelector(t *testing.T) {
	namespaces := NamespaceLabels{"default": nil, "blue": {"team": "a"}, "red": {"team": "b"}}
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": "web", "hash": "7"}}}
	for _, x := range []struct {
		name, term     string
		namespace, app string
		hash           string
		want           bool
	}{
		{"the owner's namespace", "labelSelector: {matchLabels: {app: db}}", "default", "db", "", true},
		{"another namespace", "labelSelector: {matchLabels: {app: db}}", "blue", "db", "", false},
		{"other labels", "labelSelector: {matchLabels: {app: db}}", "default", "web", "", false},
		{"no labelSelector", "{}", "default", "db", "", false},
		{"an empty labelSelector", "labelSelector: {}", "default", "db", "", true},
		{"a namespace by name", "{labelSelector: {}, namespaces: [blue]}", "blue", "db", "", true},
		{"by name, and it is the owner's", "{labelSelector: {}, namespaces: [blue]}", "default", "db", "", false},
		{"a namespace by label", "{labelSelector: {}, namespaceSelector: {matchLabels: {team: a}}}", "blue", "db", "", true},
		{"of another label", "{labelSelector: {}, namespaceSelector: {matchLabels: {team: a}}}", "red", "db", "", false},
		{"by label, and the owner's has none", "{labelSelector: {}, namespaceSelector: {matchLabels: {team: a}}}", "default", "db", "", false},
		{"by label or by name", "{labelSelector: {}, namespaces: [red], namespaceSelector: {matchLabels: {team: a}}}", "red", "db", "", true},
		{"all namespaces", "{labelSelector: {}, namespaceSelector: {}}", "red", "db", "", true},
		{"matchLabelKeys", "{labelSelector: {}, matchLabelKeys: [hash]}", "default", "web", "7", true},
		{"matchLabelKeys, another value", "{labelSelector: {}, matchLabelKeys: [hash]}", "default", "web", "6", false},
		{"matchLabelKeys, and the owner has no such label", "{labelSelector: {}, matchLabelKeys: [tier]}", "default", "web", "6", true},
		{"mismatchLabelKeys", "{labelSelector: {}, mismatchLabelKeys: [hash]}", "default", "web", "7", false},
		{"mismatchLabelKeys, another value", "{labelSelector: {}, mismatchLabelKeys: [hash]}", "default", "web", "6", true},
		{"a selector that cannot be read", "labelSelector: {matchExpressions: [{key: app, operator: Near}]}", "default", "db", "", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := TermSelector(fromYAML[corev1.PodAffinityTerm](t, x.term), owner)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Labels: map[string]string{"app": x.app, "hash": x.hash}}}
			if got := s.Matches(pod, namespaces); got != x.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// Which nodes a constraint counts. By default: those that match the pod's nodeSelector, whatever their taints.
func TestSpreadRule(t *testing.T) {
	for _, x := range []struct {
		name, constraint              string
		selected, tolerated, complete bool
		want                          bool
	}{
		{"by default", "{}", true, true, true, true},
		{"a taint", "{}", true, false, true, true},
		{"not selected", "{}", false, true, true, false},
		{"a key is missing", "{}", true, true, false, false},
		{"affinity is ignored", "nodeAffinityPolicy: Ignore", false, true, true, true},
		{"affinity is honoured", "nodeAffinityPolicy: Honor", false, true, true, false},
		{"taints are honoured", "nodeTaintsPolicy: Honor", true, false, true, false},
		{"taints are ignored", "nodeTaintsPolicy: Ignore", true, false, true, true},
		{"preferred, and a key is missing", "whenUnsatisfiable: ScheduleAnyway", true, true, false, true},
	} {
		r := SpreadRuleOf(fromYAML[corev1.TopologySpreadConstraint](t, x.constraint))
		if got := r.CountsNode(x.selected, x.tolerated, x.complete); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"hash": "7"}}}
	s := SpreadSelector(fromYAML[corev1.TopologySpreadConstraint](t, "{labelSelector: {}, matchLabelKeys: [hash]}"), owner)
	if !CountsPods(&s) || !s.Matches(owner, nil) {
		t.Error("matchLabelKeys make a selector that is not empty")
	}
	s = SpreadSelector(fromYAML[corev1.TopologySpreadConstraint](t, "labelSelector: {}"), owner)
	if CountsPods(&s) || !s.Matches(owner, nil) {
		t.Error("an empty selector chooses the pod and counts none")
	}
	owner.DeletionTimestamp = new(metav1.Now())
	if s.Matches(owner, nil) {
		t.Error("a pod that is being deleted counts")
	}
}
