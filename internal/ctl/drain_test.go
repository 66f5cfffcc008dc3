package ctl

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/ctl/exit"
)

// A node is closed, its pods are evicted, also one whose eviction is refused at first, and nothing is evicted as long as
// a pod needs a flag.
func TestDrain(t *testing.T) {
	owned := pod("default", "web")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: new(true)}}
	bare := pod("default", "bare")
	for _, p := range []*corev1.Pod{owned, bare} {
		p.Spec.NodeName = "n1"
	}
	f := newFake(t, node("n1", nil), owned, bare)
	var bodies []string
	refused := 0
	for _, p := range []*corev1.Pod{owned, bare} {
		f.routes["POST "+pathOf(p)+"/eviction"] = func(w http.ResponseWriter, r *http.Request) {
			if p == owned && refused < 2 {
				refused++
				fail(w, apierrors.NewTooManyRequests("a budget is used up", 1))
				return
			}
			b, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(b))
			delete(f.objects, pathOf(p))
			reply(w, http.StatusCreated, &metav1.Status{Status: metav1.StatusSuccess})
		}
	}
	got := f.ctl("", "drain", "n1")
	if got.code != exit.Failed || !strings.Contains(got.text, "default/bare has no controller") || strings.Contains(got.text, "default/web") || len(bodies) != 0 {
		t.Errorf("%+v", got)
	}
	if n := f.get(pathOf(node("n1", nil))).(*corev1.Node); !n.Spec.Unschedulable {
		t.Error("it is not closed")
	}
	if got = f.ctl("", "drain", "n1", "--force", "--dry-run"); got.code != 0 || !strings.Contains(got.out, "pod/bare would be evicted") || len(bodies) != 0 {
		t.Errorf("%+v", got)
	}
	got = f.ctl("", "drain", "n1", "--force", "--grace-period", "3")
	if got.code != 0 || !strings.Contains(got.out, "pod/web evicted") || !strings.Contains(got.out, "node/n1 drained") || refused != 2 {
		t.Errorf("%+v, refused %d times", got, refused)
	}
	for _, b := range bodies {
		if !strings.Contains(b, `"gracePeriodSeconds":3`) || !strings.Contains(b, `"uid":`) {
			t.Error(b)
		}
	}
	if got = f.ctl("", "drain"); got.code != exit.Usage {
		t.Errorf("%+v", got)
	}
}
