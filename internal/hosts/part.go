package hosts

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Part has the network lose all IPv4 packets between this host and another one, while both reach everybody else. Heal of
// either ends it.
func (h *Host) Part(other *Host) error {
	a, b := h, other
	if a == b {
		return errors.New("a host cannot be parted from itself")
	}
	name := partName(a, b)
	for _, one := range []*Host{a, b} {
		if one.parted == nil {
			one.parted = map[string]bool{}
		}
		one.parted[name] = true
	}
	return h.lab.hub.do(func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: name})
		ch := c.AddChain(&nftables.Chain{Name: "between", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityFilter})
		for _, way := range [][2]*Host{{a, b}, {b, a}} {
			c.AddRule(&nftables.Rule{Table: t, Chain: ch, Exprs: append(append(onLink(expr.MetaKeyIIFNAME, way[0].port), toAddress(way[1])...),
				&expr.Verdict{Kind: expr.VerdictDrop})})
		}
		return c.Flush()
	})
}

func partName(a, b *Host) string {
	if a.link > b.link {
		a, b = b, a
	}
	return a.link + "|" + b.link
}

// toAddress matches IPv4 packets to a host.
func toAddress(h *Host) []expr.Any {
	const destination = 16 // in the header of IPv4
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{0x08, 0x00}},
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: destination, Len: 4},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: h.Address.AsSlice()},
	}
}

// unpart ends all Parts of a host.
func (h *Host) unpart() error {
	if len(h.parted) == 0 {
		return nil
	}
	parted := h.parted
	for _, other := range h.lab.hosts {
		if other != h {
			delete(other.parted, partName(h, other))
		}
	}
	h.parted = nil
	return h.lab.hub.do(func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		for name := range parted {
			c.DelTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: name})
		}
		return c.Flush()
	})
}

// stepPart is the step "part NAME NAME".
func (p *play) stepPart(_ context.Context, args []string) error {
	if len(args) != 2 {
		return errWords
	}
	a, err := p.named(args[0])
	if err != nil {
		return err
	}
	b, err := p.named(args[1])
	if err != nil {
		return err
	}
	if err := a.Part(b); err != nil {
		return fmt.Errorf("between %s and %s: %w", a.Name, b.Name, err)
	}
	return nil
}
