package network

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// TableName is the nftables table all of this lives in.
func (n *Network) TableName() string { return "minik8s-pods-" + n.owner }

// The registers a key is put together in, four bytes each.
const (
	reg0 = unix.NFT_REG32_00
	reg1 = unix.NFT_REG32_01
	reg2 = unix.NFT_REG32_02
)

// ruleset is the table with its sets. It is made anew for each use: it only names things.
type ruleset struct {
	table    *nftables.Table
	ports    *nftables.Set // (protocol, port) -> (address, port)
	portsAt  *nftables.Set // (address, protocol, port) -> (address, port)
	hairpins *nftables.Set // (address, address) of pods that have host ports
}

func newRuleset(table string) (*ruleset, error) {
	t := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: table}
	port, err := nftables.ConcatSetType(nftables.TypeInetProto, nftables.TypeInetService)
	if err != nil {
		return nil, err
	}
	portAt, err := nftables.ConcatSetType(nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService)
	if err != nil {
		return nil, err
	}
	target, err := nftables.ConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
	if err != nil {
		return nil, err
	}
	pair, err := nftables.ConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr)
	if err != nil {
		return nil, err
	}
	return &ruleset{
		table:    t,
		ports:    &nftables.Set{Table: t, Name: "hostports", IsMap: true, Concatenation: true, KeyType: port, DataType: target},
		portsAt:  &nftables.Set{Table: t, Name: "hostports-at", IsMap: true, Concatenation: true, KeyType: portAt, DataType: target},
		hairpins: &nftables.Set{Table: t, Name: "hairpins", Concatenation: true, KeyType: pair},
	}, nil
}

func (r *ruleset) set(name string) *nftables.Set {
	switch name {
	case r.ports.Name:
		return r.ports
	case r.portsAt.Name:
		return r.portsAt
	default:
		return r.hairpins
	}
}

// applyRules replaces the table by the desired one in one transaction, with the elements known here.
func (n *Network) applyRules(pods, cluster netip.Prefix) error {
	r, err := newRuleset(n.TableName())
	if err != nil {
		return err
	}
	c, err := nftables.New()
	if err != nil {
		return err
	}
	// Deleting needs it to be there.
	c.AddTable(r.table)
	c.DelTable(r.table)
	c.AddTable(r.table)
	elements := map[string][]nftables.SetElement{}
	for _, list := range n.ports {
		for _, e := range list {
			elements[e.set] = append(elements[e.set], nftables.SetElement{Key: e.key, Val: e.val})
		}
	}
	for _, s := range []*nftables.Set{r.ports, r.portsAt, r.hairpins} {
		if err := c.AddSet(s, elements[s.Name]); err != nil {
			return err
		}
	}
	chain := func(name string, kind nftables.ChainType, hook *nftables.ChainHook, prio *nftables.ChainPriority, rules ...[]expr.Any) {
		ch := c.AddChain(&nftables.Chain{Table: r.table, Name: name, Type: kind, Hooknum: hook, Priority: prio})
		for _, exprs := range rules {
			c.AddRule(&nftables.Rule{Table: r.table, Chain: ch, Exprs: exprs})
		}
	}
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	chain("guard", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw,
		join(notFrom("lo"), to(loopback, expr.CmpOpEq), []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}))
	chain("prerouting", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest,
		r.dnatAt(), r.dnat())
	chain("output", nftables.ChainTypeNAT, nftables.ChainHookOutput, nftables.ChainPriorityNATDest,
		r.dnatAt(), r.dnat())
	chain("postrouting", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource,
		join(from(pods), to(cluster, expr.CmpOpNeq), []expr.Any{&expr.Masq{}}),
		join(r.hairpin(), []expr.Any{&expr.Masq{}}),
		join(from(loopback), outBy(n.linkPrefix()), []expr.Any{&expr.Masq{}}))
	return c.Flush()
}

func (n *Network) deleteRules() error {
	r, err := newRuleset(n.TableName())
	if err != nil {
		return err
	}
	c, err := nftables.New()
	if err != nil {
		return err
	}
	c.AddTable(r.table)
	c.DelTable(r.table)
	if err := c.Flush(); err != nil {
		return fmt.Errorf("network: nftables: %w", err)
	}
	return nil
}

// change adds and deletes elements in one transaction. An element to be deleted that is not there is
// no error.
func (n *Network) change(list []element, add bool) error {
	r, err := newRuleset(n.TableName())
	if err != nil {
		return err
	}
	c, err := nftables.New()
	if err != nil {
		return err
	}
	for _, e := range list {
		item := []nftables.SetElement{{Key: e.key, Val: e.val}}
		if add {
			err = c.SetAddElements(r.set(e.set), item)
		} else {
			err = c.SetDeleteElements(r.set(e.set), item)
		}
		if err != nil {
			return err
		}
	}
	err = c.Flush()
	if !add && errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// dnat sends what is for a local address and a known port on to the pod behind it.
func (r *ruleset) dnat() []expr.Any {
	return join(local(), []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg0},
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}, lookupDNAT(r.ports))
}

// dnatAt is dnat for ports that are bound to one address of the host.
func (r *ruleset) dnatAt() []expr.Any {
	return join(local(), []expr.Any{
		&expr.Payload{DestRegister: reg0, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg1},
		&expr.Payload{DestRegister: reg2, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}, lookupDNAT(r.portsAt))
}

func lookupDNAT(s *nftables.Set) []expr.Any {
	return []expr.Any{
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, IsDestRegSet: true, SetName: s.Name},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: reg0, RegProtoMin: reg1, Specified: true},
	}
}

func (r *ruleset) hairpin() []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: reg0, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4},
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: r.hairpins.Name},
	}
}

// local matches packets for an address of this host.
func local() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
}

func from(p netip.Prefix) []expr.Any              { return inPrefix(p, 12, expr.CmpOpEq) }
func to(p netip.Prefix, op expr.CmpOp) []expr.Any { return inPrefix(p, 16, op) }

func inPrefix(p netip.Prefix, offset uint32, op expr.CmpOp) []expr.Any {
	mask := uint32(0xffffffff) << (32 - p.Bits())
	addr := p.Masked().Addr().As4()
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{
			SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4,
			Mask: binaryutil.BigEndian.PutUint32(mask), Xor: make([]byte, 4),
		},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: addr[:]},
	}
}

func notFrom(link string) []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, link)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_1, Data: name},
	}
}

// outBy matches links whose name starts like this.
func outBy(prefix string) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte(prefix)},
	}
}

func join(parts ...[]expr.Any) []expr.Any {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
