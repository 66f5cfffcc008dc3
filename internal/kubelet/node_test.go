package kubelet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestNodeIsRegistered(t *testing.T) {
	b := newBed(t)
	b.cfg.Version, b.cfg.RuntimeVersion, b.cfg.PodCIDR = "v1.37.0", "1.7.35", netip.MustParsePrefix("10.244.0.0/24")
	b.start()
	node, err := client.Get[*corev1.Node](t.Context(), b.api, client.Key{Kind: api.Nodes, Name: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	if !nodeReady(node) || node.Labels[corev1.LabelHostname] != "node1" || node.Spec.PodCIDR != "10.244.0.0/24" ||
		node.Status.Allocatable.Pods().Value() != 110 || node.Status.Allocatable.Cpu().IsZero() ||
		node.Status.NodeInfo.ContainerRuntimeVersion != "containerd://1.7.35" || len(node.Status.Images) != 2 || len(node.Status.Conditions) != 4 {
		t.Errorf("%+v", node)
	}
}

func TestNodeComesBackWhenDeleted(t *testing.T) {
	b := newBed(t)
	b.start()
	key := client.Key{Kind: api.Nodes, Name: "node1"}
	if _, err := b.api.Delete(t.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
	b.api.awaitNode(t, "registered again", nodeReady)
}

func TestManifestOfTheNodeIsFilledIn(t *testing.T) {
	b := newBed(t)
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", Labels: map[string]string{"disk": "ssd"}},
		Spec: corev1.NodeSpec{PodCIDR: "10.9.0.0/24", Unschedulable: true}}
	if _, err := b.api.Create(t.Context(), made, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.start()
	node, err := client.Get[*corev1.Node](t.Context(), b.api, client.Key{Kind: api.Nodes, Name: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	if !nodeReady(node) || node.Labels["disk"] != "ssd" || node.Labels[corev1.LabelHostname] != "node1" ||
		node.Spec.PodCIDR != "10.9.0.0/24" || !node.Spec.Unschedulable {
		t.Errorf("%+v", node)
	}
}

// deaf is an API that does not answer the first renewals of a Lease, as when a master dies.
type deaf struct {
	client.Interface
	left atomic.Int32
}

func (d *deaf) Patch(ctx context.Context, key client.Key, p client.Patch, opts client.WriteOptions) (api.Object, error) {
	if key.Kind == api.Leases && d.left.Add(-1) >= 0 {
		return nil, errors.New("the connection is lost")
	}
	return d.Interface.Patch(ctx, key, p, opts)
}

// A heartbeat that was lost is sent again, and does not wait until the next one is due.
func TestHeartbeatIsRepeated(t *testing.T) {
	b := newBed(t)
	d := &deaf{Interface: b.api.node.Interface}
	d.left.Store(2)
	b.api.node.Interface, b.cfg.HeartbeatInterval = d, time.Hour
	b.start()
	key := client.Key{Kind: api.Leases, Namespace: corev1.NamespaceNodeLease, Name: "node1"}
	await(t, b.api, key, "renewed", func(l *coordinationv1.Lease) bool { return l != nil })
	if left := d.left.Load(); left >= 0 {
		t.Errorf("it was renewed at the first try; %d were to fail", left)
	}
}

// A master's Node says where its API is, also when that changes or somebody takes it away, and not any more when the machine
// is no master.
func TestNodeTellsWhereTheAPIIs(t *testing.T) {
	b := newBed(t)
	says := func(address string, master bool) func(*corev1.Node) bool {
		return func(n *corev1.Node) bool {
			_, label := n.Labels[api.ControlPlane]
			return n.Annotations[api.APIAddressAnnotation] == address && label == master
		}
	}
	b.api.ofMaster(true)
	b.cfg.APIAddress, b.cfg.Labels = "10.0.0.1:6443", map[string]string{api.ControlPlane: ""}
	b.start()
	b.api.awaitNode(t, "its address", says("10.0.0.1:6443", true))
	b.stop()
	b.cfg.APIAddress = "10.0.0.2:6443"
	b.start()
	b.api.awaitNode(t, "its new address", says("10.0.0.2:6443", true))
	patch := client.Patch{Type: types.MergePatchType, Data: []byte(`{"metadata":{"annotations":{"minik8s.io/api-address":"10.0.0.66:6443","other":"stays"}}}`)}
	if _, err := b.api.Patch(t.Context(), client.Key{Kind: api.Nodes, Name: "node1"}, patch, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.api.awaitNode(t, "its own address again", says("10.0.0.2:6443", true))
	b.stop()
	b.api.ofMaster(false)
	b.cfg.APIAddress, b.cfg.Labels = "", nil
	b.start()
	b.api.awaitNode(t, "no address", says("", false))
	node, err := client.Get[*corev1.Node](t.Context(), b.api, client.Key{Kind: api.Nodes, Name: "node1"})
	if err != nil || node.Annotations["other"] != "stays" {
		t.Error(node, err)
	}
}

// hostNetwork is the pods' network of a host that filters, and that is told the range of its pods.
type hostNetwork struct {
	trouble atomic.Pointer[trouble]
	ranges  []netip.Prefix
}

type trouble struct{ stopped, partly []string }

func (h *hostNetwork) Trouble() (stopped, partly []string) {
	if t := h.trouble.Load(); t != nil {
		return t.stopped, t.partly
	}
	return nil, nil
}

func (h *hostNetwork) SetPodCIDR(_ context.Context, p netip.Prefix) error {
	h.ranges = append(h.ranges, p)
	return nil
}

// The Node's condition shows what stops pods' traffic, and when nothing does any longer.
func TestNodeTellsWhatStopsTraffic(t *testing.T) {
	b := newBed(t)
	host := &hostNetwork{}
	host.trouble.Store(&trouble{stopped: []string{"table ip fw chain forward, policy drop"}, partly: []string{"one port"}})
	b.cfg.Network, b.cfg.HeartbeatInterval = host, 10*time.Millisecond
	b.start()
	await := func(want corev1.ConditionStatus, message string) {
		t.Helper()
		b.api.awaitNode(t, string(want)+" "+message, func(n *corev1.Node) bool {
			return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeNetworkUnavailable && c.Status == want && strings.Contains(c.Message, message)
			})
		})
	}
	await(corev1.ConditionTrue, "table ip fw chain forward, policy drop")
	host.trouble.Store(&trouble{stopped: []string{"another"}})
	await(corev1.ConditionTrue, "another")
	host.trouble.Store(&trouble{partly: []string{"1", "2", "3", "4", "5", "6", "7"}})
	await(corev1.ConditionFalse, "a part of pods' traffic: 1; 2; 3; 4; 5; and 2 more")
	host.trouble.Store(nil)
	await(corev1.ConditionFalse, "nothing")
}

func TestRangeOfTheNodeIsUsed(t *testing.T) {
	b := newBed(t)
	host := &hostNetwork{}
	b.cfg.Network = host
	b.cfg.PodCIDR = netip.MustParsePrefix("10.244.0.0/24")
	b.start()
	b.stop()
	if len(host.ranges) > 0 {
		t.Errorf("the range was set to %v, though it was that before", host.ranges)
	}
	b.cfg.PodCIDR = netip.Prefix{}
	b.start()
	b.stop()
	if len(host.ranges) != 1 || host.ranges[0].String() != "10.244.0.0/24" {
		t.Errorf("the range was set to %v", host.ranges)
	}
	// The name is taken by another configuration.
	b.cfg.PodCIDR = netip.MustParsePrefix("10.9.0.0/24")
	err := New(b.cfg, b.api.node, b.cri).Run(t.Context(), func() { t.Error("it runs") })
	if err == nil || !strings.Contains(err.Error(), "exists with podCIDR 10.244.0.0/24") {
		t.Error(err)
	}
}

// A Node that was made by a manifest for another machine is not taken, and the error says which label it is about. Later
// the labels are those of whoever starts the kubelet.
func TestNodeOfAnotherConfiguration(t *testing.T) {
	b := newBed(t)
	b.cfg.Labels = map[string]string{"disk": "ssd", "zone": "a"}
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.cfg.NodeName, Labels: map[string]string{"disk": "hdd", "zone": "a", "more": "yes"}}}
	if _, err := b.api.Create(t.Context(), made, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := New(b.cfg, b.api.node, b.cri).Run(t.Context(), func() { t.Error("it runs") })
	if err == nil || !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "disk=hdd, not ssd") || strings.Contains(err.Error(), "zone=") {
		t.Error(err)
	}
	b.cfg.Labels["disk"] = "hdd"
	b.start()
	b.stop()
	b.cfg.Labels["disk"] = "nvme"
	b.start()
	b.api.awaitNode(t, "new labels", func(n *corev1.Node) bool { return n.Labels["disk"] == "nvme" && n.Labels["more"] == "yes" })
}
