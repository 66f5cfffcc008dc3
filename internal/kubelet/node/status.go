package node

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
)

const (
	// statusEvery is how often the Node's status is written even if nothing has changed.
	statusEvery = 5 * time.Minute
	// maxImages is how many images the Node lists, the largest ones.
	maxImages = 50
)

// writeStatus writes node's present status, if it differs.
func (n *Manager) writeStatus(ctx context.Context, node *corev1.Node) error {
	for {
		want := node.DeepCopy()
		n.fillStatus(ctx, want, n.cfg.Now())
		obj, err := n.client.Update(ctx, want, client.WriteOptions{Subresource: "status"})
		if apierrors.IsConflict(err) {
			if node, err = client.Get[*corev1.Node](ctx, n.client, n.key()); err == nil {
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

// fillStatus sets all that the kubelet knows of the node.
func (n *Manager) fillStatus(ctx context.Context, node *corev1.Node, now time.Time) {
	st := &node.Status
	st.Capacity = n.capacity(node)
	st.Allocatable = allocatableOf(st.Capacity)
	st.Addresses = nil
	if ip := n.cfg.IP; ip.IsValid() {
		st.Addresses = append(st.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip.String()})
	}
	st.Addresses = append(st.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.cfg.Name})
	st.DaemonEndpoints.KubeletEndpoint.Port = n.cfg.Port
	st.Features = &corev1.NodeFeatures{SupplementalGroupsPolicy: new(true)}
	st.NodeInfo = n.host.info(n.cfg.Version, n.cfg.RuntimeVersion)
	for _, c := range n.conditions() {
		setNodeCondition(st, c, now)
	}
	n.fillImages(ctx, st)
}

// statusChanged reports whether the written status is out of date, except for time stamps.
func (n *Manager) statusChanged(ctx context.Context, node *corev1.Node) bool {
	if n.imagesStale.Load() {
		return true
	}
	capacity := n.capacity(node)
	if !equality.Semantic.DeepEqual(node.Status.Capacity, capacity) ||
		!equality.Semantic.DeepEqual(node.Status.Allocatable, allocatableOf(capacity)) {
		return true
	}
	for _, c := range n.conditions() {
		for _, have := range node.Status.Conditions {
			if have.Type == c.Type && (have.Status != c.Status || have.Reason != c.Reason || have.Message != c.Message) {
				return true
			}
		}
	}
	return !n.saysReadiness(node)
}

// fillImages sets the list of images; on an error of the runtime the list stays as it was.
func (n *Manager) fillImages(ctx context.Context, st *corev1.NodeStatus) {
	n.imagesStale.Store(false)
	images, err := n.runtime.ListImages(ctx)
	if err != nil {
		n.log.Warn("images not listed", "error", err)
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
