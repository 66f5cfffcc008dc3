package owner

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func TestJudge(t *testing.T) {
	now := metav1.Now()
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	for name, test := range map[string]struct {
		controller         types.UID
		app                string
		ownerDeleting, pod bool // being deleted
		namespace          string
		want               Relation
	}{
		"the owner's":                                    {controller: "u", app: "web", want: Keep},
		"the owner's, while it is being deleted":         {controller: "u", app: "web", ownerDeleting: true, want: Keep},
		"the owner's, no match":                          {controller: "u", app: "x", want: Release},
		"not released by an owner that is being deleted": {controller: "u", app: "x", ownerDeleting: true, want: Ignore},
		"another's":                                     {controller: "v", app: "web", want: Ignore},
		"without a controller":                          {app: "web", want: Adopt},
		"without a controller, no match":                {app: "x", want: Ignore},
		"without a controller, being deleted":           {app: "web", pod: true, want: Ignore},
		"not adopted by an owner that is being deleted": {app: "web", ownerDeleting: true, want: Ignore},
		"in another namespace":                          {app: "web", namespace: "other", want: Ignore},
	} {
		o := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: "u"}}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": test.app}}}
		if test.namespace != "" {
			p.Namespace = test.namespace
		}
		if test.controller != "" {
			p.OwnerReferences = []metav1.OwnerReference{{UID: test.controller, Controller: new(true)}}
		}
		if test.ownerDeleting {
			o.DeletionTimestamp = &now
		}
		if test.pod {
			p.DeletionTimestamp = &now
		}
		if got := RelationOf(o, selector, p); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}
