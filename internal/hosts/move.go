package hosts

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/machine"
)

// moveBy is how far a new address is from the old one: further than a lab has hosts.
const moveBy = 50

// Move gives the host another address in its subnet, in the place of the one that it has.
func (h *Host) Move() error {
	for i, p := range h.lab.subnets {
		if !p.Contains(h.Address) {
			continue
		}
		a := h.Address.As4()
		a[3] += moveBy
		to := netip.AddrFrom4(a)
		if to == router(h.lab.subnets[i]) || !p.Contains(to) {
			return fmt.Errorf("%s has moved too often", h.Name)
		}
		err := h.ns.do(func() error {
			return machine.Readdress(netip.PrefixFrom(h.Address, p.Bits()), netip.PrefixFrom(to, p.Bits()), router(p))
		})
		if err == nil {
			h.Address = to
		}
		return err
	}
	return fmt.Errorf("%s is in no subnet", h.Name)
}

// expectAddress is "expect address NAME".
func (p *play) expectAddress(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	c, err := p.api()
	if err != nil {
		return err
	}
	node, err := client.Get[*corev1.Node](ctx, c, client.Key{Kind: api.Nodes, Name: h.Name})
	if err != nil {
		return err
	}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && a.Address != h.Address.String() {
			return fmt.Errorf("its Node says %s", a.Address)
		}
	}
	pods, _, err := client.All[*corev1.Pod](ctx, c, api.Pods, client.ListOptions{Fields: fields.OneTermEqualSelector("spec.nodeName", h.Name)})
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.Status.HostIP != h.Address.String() {
			return fmt.Errorf("pod %s says %s", pod.Name, pod.Status.HostIP)
		}
	}
	return nil
}
