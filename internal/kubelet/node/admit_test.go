package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan/plantest"
)

// oneNode is an API that has a Node, or cannot be reached.
type oneNode struct {
	client.Interface
	node *corev1.Node
	err  error
}

func (c *oneNode) Get(context.Context, client.Key) (api.Object, error) { return c.node, c.err }

// A label that the kubelet has not seen yet is no reason to reject a pod: the Node is read anew.
func TestAdmitByAnOldNode(t *testing.T) {
	old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1"}}
	now := old.DeepCopy()
	now.Labels = map[string]string{"disk": "ssd"}
	c := &oneNode{node: now}
	n := New(Config{Name: "node1", DataDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, c, nil, nil)
	n.remember(t.Context(), old)
	no, err := n.Admit(t.Context(), plantest.Pod("web", plantest.WantsDisk("ssd")))
	if no != nil || err != nil {
		t.Errorf("%+v, %v", no, err)
	}
	if no, err = n.Admit(t.Context(), plantest.Pod("web", plantest.WantsDisk("hdd"))); no == nil || no.Reason != "NodeAffinity" || err != nil {
		t.Errorf("another disk: %+v, %v", no, err)
	}
	c.err = errors.New("nobody home")
	if no, err = n.Admit(t.Context(), plantest.Pod("web", plantest.WantsDisk("hdd"))); no != nil || err == nil {
		t.Errorf("with no API: %+v, %v", no, err)
	}
}
