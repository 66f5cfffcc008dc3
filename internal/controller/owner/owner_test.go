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
		"ours":                               {controller: "u", app: "web", want: Keep},
		"ours, of one that is ownerDeleting": {controller: "u", app: "web", ownerDeleting: true, want: Keep},
		"ours no more":                       {controller: "u", app: "x", want: Release},
		"not released by the ownerDeleting":  {controller: "u", app: "x", ownerDeleting: true, want: Ignore},
		"another's":                          {controller: "v", app: "web", want: Ignore},
		"nobody's":                           {app: "web", want: Adopt},
		"nobody's, no match":                 {app: "x", want: Ignore},
		"nobody's, ownerDeleting":            {app: "web", pod: true, want: Ignore},
		"not for one that is ownerDeleting":  {app: "web", ownerDeleting: true, want: Ignore},
		"elsewhere":                          {app: "web", namespace: "other", want: Ignore},
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
