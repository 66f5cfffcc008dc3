package machines

import (
	"context"
	"errors"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/bench/bed"
	"minik8s/internal/client"
	"minik8s/internal/hosts"
)

const followed = 10 // how often a Node comes, moves and goes

// followNodes measures how soon a host's routes follow the Nodes of others: one that comes, gets another address, and goes.
func followNodes(r *bed.Report, m, near *hosts.Host) (err error) {
	c, err := m.API()
	if err != nil {
		return err
	}

	var came, moved, gone bed.Samples
	ctx, pods := context.Background(), netip.MustParsePrefix("10.244.200.0/24")
	first := near.Address.Next().Next()
	second := first.Next()
	for range followed {
		for _, s := range []struct {
			to *bed.Samples
			do func() error
			by netip.Addr // the next hop, which is the other host's address
		}{
			{&came, func() error { return nodeAt(ctx, c, pods, first) }, first},
			{&moved, func() error { return nodeAt(ctx, c, pods, second) }, second},
			{&gone, func() error {
				_, err := c.Delete(ctx, client.Key{Kind: api.Nodes, Name: "other"}, nil)
				return err
			}, netip.Addr{}},
		} {
			began := time.Now()
			if err := s.do(); err != nil {
				return err
			}
			if err := poll(func() bool { by, _ := m.NextHop(pods); return by == s.by }); err != nil {
				return errors.Join(errors.New("the route to another node's pods"), err)
			}
			*s.to = append(*s.to, time.Since(began))
		}
	}
	for _, x := range []struct {
		what string
		bed.Samples
	}{{"a Node comes: to the route to its pods, worst of 10", came}, {"  it gets another address", moved}, {"  it goes", gone}} {
		r.Add(x.what, bed.Ms(x.P(100)), "ms", "<= 1000 ms", "")
	}
	return nil
}

// nodeAt has a Node with a range of pod addresses at an address.
func nodeAt(ctx context.Context, c client.Interface, pods netip.Prefix, at netip.Addr) error {
	fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.NodeSpec{PodCIDR: pods.String(), PodCIDRs: []string{pods.String()}}}
	if _, err := c.Create(ctx, fresh, client.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for { // controllers write to it, too
		node, err := client.Get[*corev1.Node](ctx, c, client.Key{Kind: api.Nodes, Name: "other"})
		if err != nil {
			return err
		}
		node = node.DeepCopy()
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.String()}}
		if _, err := c.Update(ctx, node, client.WriteOptions{Subresource: "status"}); !apierrors.IsConflict(err) {
			return err
		}
	}
}
