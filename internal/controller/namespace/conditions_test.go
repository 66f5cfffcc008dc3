package namespace

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

func condition(list []corev1.NamespaceCondition, t corev1.NamespaceConditionType) corev1.NamespaceCondition {
	for _, c := range list {
		if c.Type == t {
			return c
		}
	}
	return corev1.NamespaceCondition{}
}

func TestConditions(t *testing.T) {
	held := remains{kind: api.Pods, count: 3, finalizers: map[string]int{"x.io/b": 2, "x.io/a": 1}}
	free := remains{kind: api.Deployments, count: 1, finalizers: map[string]int{"x.io/b": 1}}
	for name, test := range map[string]struct {
		left []remains
		err  error
		want map[corev1.NamespaceConditionType]string // the reasons and messages of those that are true
	}{
		"empty": {},
		"an error": {nil, errors.Join(errors.New("no"), errors.New("nor this")), map[corev1.NamespaceConditionType]string{
			corev1.NamespaceDeletionContentFailure: "ContentDeletionFailed: Failed to delete all resource types, remaining: no, nor this"}},
		"held": {[]remains{held, free}, nil, map[corev1.NamespaceConditionType]string{
			corev1.NamespaceContentRemaining:    "SomeResourcesRemain: Some resources are remaining: deployments.apps has 1 resource instances, pods. has 3 resource instances",
			corev1.NamespaceFinalizersRemaining: "SomeFinalizersRemain: Some content in the namespace has finalizers remaining: x.io/a in 1 resource instances, x.io/b in 3 resource instances"}},
		"on its way": {[]remains{{kind: api.Pods, count: 1}}, nil, map[corev1.NamespaceConditionType]string{
			corev1.NamespaceContentRemaining: "SomeResourcesRemain: Some resources are remaining: pods. has 1 resource instances"}},
	} {
		got := conditions(test.left, test.err)
		if len(got) != len(healthy) {
			t.Errorf("%s: %d conditions", name, len(got))
		}
		for _, c := range got {
			want, bad := test.want[c.Type]
			switch {
			case bad != (c.Status == corev1.ConditionTrue):
				t.Errorf("%s: %s is %s", name, c.Type, c.Status)
			case bad && c.Reason+": "+c.Message != want:
				t.Errorf("%s: %s says %s: %s", name, c.Type, c.Reason, c.Message)
			}
		}
	}
}

// A condition keeps the time of its last transition until its status is another one, and what others wrote
// stays.
func TestMerge(t *testing.T) {
	status := corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{{Type: "Theirs", Status: corev1.ConditionTrue}}}
	if !merge(&status, conditions([]remains{{kind: api.Pods, count: 2}}, nil)) || len(status.Conditions) != 1+len(healthy) {
		t.Fatalf("%+v", status)
	}
	if merge(&status, conditions([]remains{{kind: api.Pods, count: 2}}, nil)) {
		t.Error("it changed although nothing has")
	}
	long := metav1.NewTime(time.Unix(1000, 0))
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = long
	}
	if !merge(&status, conditions([]remains{{kind: api.Pods, count: 1}}, nil)) {
		t.Error("another number is no change")
	}
	if c := condition(status.Conditions, corev1.NamespaceContentRemaining); c.LastTransitionTime != long {
		t.Error("the same status is no transition")
	}
	if !merge(&status, conditions(nil, nil)) {
		t.Error("nothing left is no change")
	}
	if c := condition(status.Conditions, corev1.NamespaceContentRemaining); c.LastTransitionTime == long || c.Status != corev1.ConditionFalse {
		t.Errorf("%+v", c)
	}
}

func TestBegins(t *testing.T) {
	now := metav1.Now()
	alive := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1"}}
	going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1", DeletionTimestamp: &now}}
	for name, test := range map[string]struct {
		old, now *corev1.Namespace
		want     bool
	}{
		"new":            {nil, alive, false},
		"found going":    {nil, going, true},
		"deleted":        {alive, going, true},
		"its conditions": {going, going, false},
		"gone":           {going, nil, false},
	} {
		if got := deletionBegins(test.old, test.now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
