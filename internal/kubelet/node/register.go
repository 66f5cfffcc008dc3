package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

const (
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
)

// Register creates the Node object, or updates the existing one, in at most two writes. It retries while the API
// cannot be reached; an error is one for which a retry does not help.
func (n *Manager) Register(ctx context.Context) error {
	delay := minRetry
	for {
		err := n.registerOnce(ctx)
		if err == nil || ctx.Err() != nil || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			return err
		}
		n.log.Warn("node not registered, trying again", "error", err, "in", delay)
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		delay = min(2*delay, maxRetry)
	}
}

func (n *Manager) registerOnce(ctx context.Context) error {
	fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name}}
	n.fillSpec(fresh)
	fresh.Spec.Taints = slices.Clone(n.cfg.Taints)
	n.fillStatus(ctx, fresh, n.cfg.Now())
	obj, err := n.client.Create(ctx, fresh, client.WriteOptions{})
	if apierrors.IsAlreadyExists(err) {
		return n.adopt(ctx)
	}
	if err != nil {
		return err
	}
	node := obj.(*corev1.Node)
	if !n.saysReadiness(node) { // the API ignores the status in a create; it needs a second write
		return n.writeStatus(ctx, node)
	}
	n.remember(ctx, node)
	return nil
}

// adopt updates an existing Node, from an earlier start or a manifest.
func (n *Manager) adopt(ctx context.Context) error {
	for {
		node, err := client.Get[*corev1.Node](ctx, n.client, n.key())
		if err != nil {
			return err
		}
		if err := errors.Join(n.checkRange(node), n.checkLabels(node)); err != nil {
			return err
		}
		want := node.DeepCopy()
		n.fillSpec(want)
		if !equality.Semantic.DeepEqual(want, node) {
			obj, err := n.client.Update(ctx, want, client.WriteOptions{})
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

// checkRange refuses a Node that has another range of pod addresses than this machine asks for. The error is BadRequest.
func (n *Manager) checkRange(node *corev1.Node) error {
	want, have := n.cfg.PodCIDR, node.Spec.PodCIDR
	if !want.IsValid() || have == "" || have == want.String() {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("Node %s exists with podCIDR %s, and this machine asks for %s: "+
		"ask for the Node's range or for none, choose another --node-name, or delete the Node", node.Name, have, want))
}

// checkLabels refuses a Node that was made for a machine with other labels than this one has. Once a kubelet has reported
// there, labels are changed by whoever starts it. The error is BadRequest.
func (n *Manager) checkLabels(node *corev1.Node) error {
	if len(node.Status.Conditions) > 0 {
		return nil
	}
	var other []string
	for k, want := range n.cfg.Labels {
		if have, ok := node.Labels[k]; ok && have != want {
			other = append(other, fmt.Sprintf("%s=%s, not %s", k, have, want))
		}
	}
	if len(other) == 0 {
		return nil
	}
	slices.Sort(other)
	return apierrors.NewBadRequest(fmt.Sprintf("Node %s was made with the labels %s, which this machine asks for: "+
		"change --node-labels or the Node, or choose another --node-name", node.Name, strings.Join(other, "; ")))
}

func (n *Manager) key() client.Key {
	return client.Key{Kind: api.Nodes, Name: n.cfg.Name}
}

// announced reports whether a Node says where this machine's API is, or that it has none, and which networks it is in.
func (n *Manager) announced(node *corev1.Node) bool {
	return node.Annotations[api.APIAddressAnnotation] == n.cfg.APIAddress && node.Annotations[api.NetworksAnnotation] == n.cfg.Networks
}

// announce says in a Node where this machine's API is, and its networks. From the Node of a machine that was a master it takes what that
// has said of itself; its taint stays, which a worker may not change.
func (n *Manager) announce(node *corev1.Node) {
	if n.announced(node) {
		return
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	for key, value := range map[string]string{api.APIAddressAnnotation: n.cfg.APIAddress, api.NetworksAnnotation: n.cfg.Networks} {
		if node.Annotations[key] = value; value == "" {
			delete(node.Annotations, key)
		}
	}
	if n.cfg.APIAddress == "" {
		delete(node.Labels, api.ControlPlane)
	}
}

// fillSpec sets the kubelet's labels, annotations and so on; what others have set stays.
func (n *Manager) fillSpec(node *corev1.Node) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelHostname:    n.cfg.Name,
		corev1.LabelOSStable:    n.host.os,
		corev1.LabelArchStable:  n.host.arch,
		"beta.kubernetes.io/os": n.host.os, "beta.kubernetes.io/arch": n.host.arch,
	})
	n.announce(node)
	maps.Copy(node.Labels, n.cfg.Labels)
	if cidr := n.cfg.PodCIDR; node.Spec.PodCIDR == "" && cidr.IsValid() {
		node.Spec.PodCIDR, node.Spec.PodCIDRs = cidr.String(), []string{cidr.String()}
	}
}
