package roles_test

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// A master that stands by is ready, and its worker's parts start, though another leads. The other is the
// same machine under another name: killed, it had no time to give its Lease back.
func TestStandbyIsReady(t *testing.T) {
	needRoot(t)
	p := newProcess(t, "--node-name=first")
	p.up()
	p.kill()
	p.args[len(p.args)-1] = "--node-name=second"
	c := p.up()
	key := client.Key{Kind: api.Leases, Namespace: "kube-system", Name: "minik8s-master"}
	lease, err := client.Get[*coordinationv1.Lease](context.Background(), c, key)
	if err != nil {
		t.Fatal(err)
	}
	if h := lease.Spec.HolderIdentity; h == nil || *h != "first" {
		t.Errorf("it was ready only when it led: %+v", lease.Spec)
	}
	if _, err := client.Get[*corev1.Node](context.Background(), c, client.Key{Kind: api.Nodes, Name: "second"}); err != nil {
		t.Errorf("its worker has not started: %v", err)
	}
}
