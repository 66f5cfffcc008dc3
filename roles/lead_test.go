package roles_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/membership"
)

var masterLease = client.Key{Kind: api.Leases, Namespace: "kube-system", Name: "minik8s-master"}

// leader compares the Lease that says who leads with what it should say.
func (p *process) leader(c client.Interface, name string, transitions int32) *coordinationv1.Lease {
	p.t.Helper()
	l, err := client.Get[*coordinationv1.Lease](context.Background(), c, masterLease)
	if err != nil {
		p.t.Fatal(err)
	}
	if s := l.Spec; s.HolderIdentity == nil || *s.HolderIdentity != name || s.LeaseTransitions == nil || *s.LeaseTransitions != transitions ||
		s.LeaseDurationSeconds != nil {
		p.t.Errorf("want %s after %d transitions: %+v", name, transitions, s)
	}
	return l
}

// deploy has all led parts work that a Deployment needs, and waits until it runs.
func (p *process) deploy(c client.Interface, app string) {
	p.t.Helper()
	p.make(c, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: selector(app), Template: template(app, forever)}})
	p.eventually(app+" running", func() bool {
		d, err := client.Get[*appsv1.Deployment](context.Background(), c, client.Key{Kind: api.Deployments, Namespace: "default", Name: app})
		return err == nil && d.Status.AvailableReplicas == 1
	})
}

// A master that was killed leads when it is back: by one write, as the same holder, or, if its node has another name
// now, as another. It waits for no time-out, and its worker's parts start.
func TestLeadsAgain(t *testing.T) {
	needRoot(t)
	p := newProcess(t, "--node-name=first")
	before := p.leader(p.up(), "first", 0)
	p.kill()
	c := p.up()
	after := p.leader(c, "first", 0)
	if before.ResourceVersion == after.ResourceVersion || !before.Spec.AcquireTime.Before(after.Spec.AcquireTime) {
		t.Error("it leads by the Lease of before it was killed")
	}
	p.kill()
	p.args[len(p.args)-1] = "--node-name=second"
	c = p.up()
	p.leader(c, "second", 1)
	if _, err := client.Get[*corev1.Node](context.Background(), c, client.Key{Kind: api.Nodes, Name: "second"}); err != nil {
		t.Errorf("its worker has not started: %v", err)
	}
}

// A user who edits or deletes the Lease does not stop the control plane: what is asked for next is done, and the Lease
// says again who leads.
func TestUserChangesTheLease(t *testing.T) {
	needRoot(t)
	p := newProcess(t, "--node-name=first")
	c, ctx := p.up(), context.Background()
	if _, err := c.Patch(ctx, masterLease, client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"holderIdentity":"me"}}`)}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.deploy(c, "edited")
	p.leader(c, "first", 1)
	if _, err := c.Delete(ctx, masterLease, nil); err != nil {
		t.Fatal(err)
	}
	p.deploy(c, "deleted")
	p.leader(c, "first", 0)
	p.stop()
}

// A master that has handed out its keys and lost its store does not make an empty cluster with them.
func TestNoSecondCluster(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	p.up()
	c, err := remote.New(remote.Config{Socket: filepath.Join(p.dir, "api.sock")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	resp, err := c.Do(context.Background(), http.MethodPost, membership.KeysPath, nil, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	p.stop()
	if err := os.RemoveAll(filepath.Join(p.dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	p.fails("--server", "etcd restore")
}
