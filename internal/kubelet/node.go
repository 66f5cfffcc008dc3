package kubelet

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
)

const (
	// statusEvery is how often the Node's status is written though nothing has changed.
	statusEvery = 5 * time.Minute
	// maxImages is how many images the Node lists, the largest ones.
	maxImages = 50
)

// nodeKeeper keeps the Node object and its Lease.
type nodeKeeper struct {
	k    *Kubelet
	host hostFacts
	// images is set when the list of images may have changed.
	images atomic.Bool

	mu    sync.Mutex
	node  *corev1.Node  // as last seen or written
	there chan struct{} // closed when node is set
	cidr  netip.Prefix  // that the runtime uses
}

func newNodeKeeper(k *Kubelet) *nodeKeeper {
	n := &nodeKeeper{k: k, host: readHostFacts(k.cfg.DataDir), cidr: k.cfg.PodCIDR, there: make(chan struct{})}
	k.admission.allocatable = n.allocatable
	return n
}

func (n *nodeKeeper) imagesChanged() { n.images.Store(true) }

// memory is the node's, in bytes.
func (n *nodeKeeper) memory() int64 {
	c := n.capacity(nil)
	return c.Memory().Value()
}

// capacity is what node has: what the machine has, and what others have written into the Node's capacity,
// such as licences or devices, of which the kubelet itself knows nothing. node may be nil.
func (n *nodeKeeper) capacity(node *corev1.Node) corev1.ResourceList {
	c := corev1.ResourceList{}
	if node != nil {
		maps.Copy(c, node.Status.Capacity)
	}
	maps.Copy(c, n.host.capacity(n.k.cfg.MaxPods))
	maps.Copy(c, n.k.cfg.Capacity)
	return c
}

// allocatable is what pods may ask for now.
func (n *nodeKeeper) allocatable() corev1.ResourceList {
	return allocatable(n.capacity(n.known()))
}

// allocatable is what pods may ask for of a capacity: all, but for a tenth of the disk.
func allocatable(capacity corev1.ResourceList) corev1.ResourceList {
	c := maps.Clone(capacity)
	if disk, ok := c[corev1.ResourceEphemeralStorage]; ok {
		disk.Set(disk.Value() / 10 * 9)
		c[corev1.ResourceEphemeralStorage] = disk
	}
	return c
}

// register makes the Node object, or fills in the one that is there, in at most two writes. While
// the API cannot be reached it tries again; an error is one that trying again does not cure.
func (n *nodeKeeper) register(ctx context.Context) error {
	delay := minRewatch
	for {
		err := n.registerOnce(ctx)
		if err == nil || ctx.Err() != nil || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			return err
		}
		n.k.log.Warn("node not registered, trying again", "error", err, "in", delay)
		pause(ctx, delay)
		delay = min(2*delay, maxRewatch)
	}
}

func (n *nodeKeeper) registerOnce(ctx context.Context) error {
	fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.k.cfg.NodeName}}
	n.fillSpec(fresh)
	fresh.Spec.Taints = slices.Clone(n.k.cfg.Taints)
	n.fillStatus(ctx, fresh, n.k.now())
	obj, err := n.k.client.Create(ctx, fresh, client.WriteOptions{})
	if apierrors.IsAlreadyExists(err) {
		return n.adopt(ctx)
	}
	if err != nil {
		return err
	}
	node := obj.(*corev1.Node)
	if nodeReady(node) == nil { // the API dropped the status, which has a write of its own
		return n.writeStatus(ctx, node)
	}
	n.remember(ctx, node)
	return nil
}

// adopt takes over a Node that exists: of an earlier life, or made by a manifest.
func (n *nodeKeeper) adopt(ctx context.Context) error {
	for {
		node, err := client.Get[*corev1.Node](ctx, n.k.client, n.key())
		if err != nil {
			return err
		}
		want := node.DeepCopy()
		n.fillSpec(want)
		if !equality.Semantic.DeepEqual(want, node) {
			obj, err := n.k.client.Update(ctx, want, client.WriteOptions{})
			if apierrors.IsConflict(err) {
				continue
			}
			if err != nil {
				return err
			}
			node = obj.(*corev1.Node)
		}
		return n.writeStatus(ctx, node)
	}
}

func (n *nodeKeeper) key() client.Key {
	return client.Key{Kind: api.Nodes, Name: n.k.cfg.NodeName}
}

// writeStatus writes the status that belongs to node, if it differs.
func (n *nodeKeeper) writeStatus(ctx context.Context, node *corev1.Node) error {
	for {
		want := node.DeepCopy()
		n.fillStatus(ctx, want, n.k.now())
		obj, err := n.k.client.Update(ctx, want, client.WriteOptions{Subresource: "status"})
		if apierrors.IsConflict(err) {
			if node, err = client.Get[*corev1.Node](ctx, n.k.client, n.key()); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		n.remember(ctx, obj.(*corev1.Node))
		return nil
	}
}

// remember keeps the Node as it is now, and has pods take their addresses from the range it names.
func (n *nodeKeeper) remember(ctx context.Context, node *corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.node == nil {
		close(n.there)
	}
	n.node = node
	cidr, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil || cidr == n.cidr {
		return
	}
	if rt, ok := n.k.runtime.(podRange); ok {
		if err := rt.SetPodCIDR(ctx, cidr); err != nil {
			n.k.log.Error("pods cannot get addresses from the range that the Node names", "range", cidr, "error", err)
			return
		}
	}
	n.cidr = cidr
}

// podRange is a runtime that can be told later where pods' addresses come from.
type podRange interface {
	SetPodCIDR(ctx context.Context, prefix netip.Prefix) error
}

func (n *nodeKeeper) known() *corev1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node
}

// fillSpec sets the labels and so on that are the kubelet's; what others have set stays.
func (n *nodeKeeper) fillSpec(node *corev1.Node) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelHostname:    n.k.cfg.NodeName,
		corev1.LabelOSStable:    n.host.os,
		corev1.LabelArchStable:  n.host.arch,
		"beta.kubernetes.io/os": n.host.os, "beta.kubernetes.io/arch": n.host.arch,
	})
	maps.Copy(node.Labels, n.k.cfg.Labels)
	if cidr := n.k.cfg.PodCIDR; node.Spec.PodCIDR == "" && cidr.IsValid() {
		node.Spec.PodCIDR, node.Spec.PodCIDRs = cidr.String(), []string{cidr.String()}
	}
}

// fillStatus sets all that the kubelet knows of the node.
func (n *nodeKeeper) fillStatus(ctx context.Context, node *corev1.Node, now time.Time) {
	st := &node.Status
	st.Capacity = n.capacity(node)
	st.Allocatable = allocatable(st.Capacity)
	st.Addresses = nil
	if ip := n.k.cfg.NodeIP; ip.IsValid() {
		st.Addresses = append(st.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip.String()})
	}
	st.Addresses = append(st.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.k.cfg.NodeName})
	st.Features = &corev1.NodeFeatures{SupplementalGroupsPolicy: new(true)}
	st.NodeInfo = n.host.info(n.k.cfg.Version, n.k.cfg.RuntimeVersion)
	for _, c := range n.conditions() {
		setNodeCondition(st, c, now)
	}
	n.fillImages(ctx, st)
}

// conditions is how the node is now.
func (n *nodeKeeper) conditions() []corev1.NodeCondition {
	list := n.host.conditions()
	if rt, ok := n.k.runtime.(podNetwork); ok {
		list = append(list, networkCondition(rt.NetworkTrouble()))
	}
	return list
}

// podNetwork is a runtime that knows what on the host stops pods' traffic.
type podNetwork interface{ NetworkTrouble() []string }

func networkCondition(trouble []string) corev1.NodeCondition {
	if len(trouble) == 0 {
		return corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse,
			Reason: "PodTrafficAccepted", Message: "nothing on the host stops pods' traffic"}
	}
	return corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue,
		Reason: "HostPacketFilter", Message: "the host's packet filter stops pods' traffic: " + strings.Join(trouble, "; ")}
}

// fillImages lists the images; if the runtime does not say, the list stays as it was.
func (n *nodeKeeper) fillImages(ctx context.Context, st *corev1.NodeStatus) {
	n.images.Store(false)
	images, err := n.k.runtime.ListImages(ctx)
	if err != nil {
		n.k.log.Warn("images not listed", "error", err)
		return
	}
	slices.SortFunc(images, func(a, b cri.Image) int {
		if a.Size != b.Size {
			if a.Size > b.Size {
				return -1
			}
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
	st.Images = nil
	for _, i := range images[:min(len(images), maxImages)] {
		st.Images = append(st.Images, corev1.ContainerImage{Names: slices.Concat(i.Digests, i.Tags), SizeBytes: i.Size})
	}
}

// setNodeCondition puts c in, keeping the time of the last change if it is none.
func setNodeCondition(st *corev1.NodeStatus, c corev1.NodeCondition, now time.Time) {
	c.LastHeartbeatTime = metav1.NewTime(now).Rfc3339Copy()
	c.LastTransitionTime = c.LastHeartbeatTime
	for i := range st.Conditions {
		if st.Conditions[i].Type == c.Type {
			if st.Conditions[i].Status == c.Status {
				c.LastTransitionTime = st.Conditions[i].LastTransitionTime
			}
			st.Conditions[i] = c
			return
		}
	}
	st.Conditions = append(st.Conditions, c)
}

func nodeReady(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// run renews the Lease, keeps the status true and registers the Node again if it is deleted, until
// ctx ends.
func (n *nodeKeeper) run(ctx context.Context) {
	n.k.rec.Event(n.known(), corev1.EventTypeNormal, "Starting", "Starting kubelet.")
	lease := &leaseKeeper{k: n.k}
	n.k.spawn(func() { n.watch(ctx) })
	lease.renew(ctx, n.known())
	tick := time.NewTicker(n.k.cfg.HeartbeatInterval)
	defer tick.Stop()
	written := n.k.now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		node := n.known()
		lease.renew(ctx, node)
		if n.k.now().Sub(written) < statusEvery && !n.statusChanged(ctx, node) {
			continue
		}
		if err := n.writeStatus(ctx, node); err != nil && ctx.Err() == nil {
			n.k.log.Warn("node status not written", "error", err)
			continue
		}
		written = n.k.now()
	}
}

// statusChanged says whether the status as written is not true any more, but for its time stamps.
func (n *nodeKeeper) statusChanged(ctx context.Context, node *corev1.Node) bool {
	if n.images.Load() {
		return true
	}
	capacity := n.capacity(node)
	if !equality.Semantic.DeepEqual(node.Status.Capacity, capacity) ||
		!equality.Semantic.DeepEqual(node.Status.Allocatable, allocatable(capacity)) {
		return true
	}
	for _, c := range n.conditions() {
		for _, have := range node.Status.Conditions {
			if have.Type == c.Type && (have.Status != c.Status || have.Reason != c.Reason || have.Message != c.Message) {
				return true
			}
		}
	}
	return nodeReady(node) == nil
}

// watch follows the Node object: whoever deletes it finds it made again, as long as the kubelet runs.
func (n *nodeKeeper) watch(ctx context.Context) {
	opts := client.WatchOptions{Bookmarks: true, Fields: fields.OneTermEqualSelector("metadata.name", n.k.cfg.NodeName)}
	keepWatching(ctx, n.k, api.Nodes, opts, func(w client.Watcher) (ok bool) {
		there := false
		for ev := range w.Events() {
			switch {
			case ev.Type == client.Bookmark:
				if ev.InitialEnd && !there {
					n.registerAgain(ctx)
				}
				ok = true
			case ev.Type == client.Deleted:
				there = false
				n.registerAgain(ctx)
			default:
				there = true
				n.remember(ctx, ev.Object.(*corev1.Node))
				n.repair(ctx, ev.Object.(*corev1.Node))
			}
		}
		return ok
	})
}

func (n *nodeKeeper) registerAgain(ctx context.Context) {
	n.k.log.Info("the Node object is gone, registering it again")
	if err := n.register(ctx); err != nil && ctx.Err() == nil {
		n.k.log.Error("node not registered again", "error", err)
	}
}

// repair marks the Node Ready at once when it says otherwise, as after a time without heartbeats.
func (n *nodeKeeper) repair(ctx context.Context, node *corev1.Node) {
	if nodeReady(node) != nil {
		return
	}
	if err := n.writeStatus(ctx, node); err != nil && ctx.Err() == nil {
		n.k.log.Warn("node status not written", "error", err)
	}
}
