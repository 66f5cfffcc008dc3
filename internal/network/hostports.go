package network

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/network/hostports"
)

// AddHostPorts forwards the host ports of a sandbox to its address, in one transaction; Disconnect ends that. A
// port that another sandbox has is an error that names it, and then none is added. For a sandbox that has its
// ports already it does nothing.
func (n *Network) AddHostPorts(sandbox string, addr netip.Addr, list []corev1.ContainerPort) error {
	if len(list) == 0 {
		return nil
	}
	p, err := hostports.New(addr, list)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, have := n.ports[sandbox]; have {
		return nil
	}
	for _, other := range n.ports {
		if err := p.Free(other); err != nil {
			return err
		}
	}
	n.ports[sandbox] = p
	if n.ready { // before Setup there is no table yet; Setup adds these
		if err := n.nf.Change(n.TableName(), true, p.Elements()); err != nil {
			// If the table was changed, by a flush for example, all of it is written again.
			if same, serr := n.nf.Same(n.desired()); serr == nil && !same {
				err = n.apply()
			}
			if err != nil {
				delete(n.ports, sandbox)
				return fmt.Errorf("network: host ports: %w", err)
			}
		}
	}
	p.Listen(n.cfg.Log)
	if udp := p.UDP(); len(udp) > 0 {
		// A client that was sending before the pod existed has a tracked flow without DNAT.
		n.endFlows(udp...)
	}
	return nil
}

// removeHostPorts undoes AddHostPorts.
func (n *Network) removeHostPorts(sandbox string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, have := n.ports[sandbox]
	if !have {
		return nil
	}
	p.Close()
	if n.ready {
		if err := n.nf.Change(n.TableName(), false, p.Elements()); err != nil {
			return fmt.Errorf("network: host ports: %w", err)
		}
	}
	delete(n.ports, sandbox)
	return nil
}
