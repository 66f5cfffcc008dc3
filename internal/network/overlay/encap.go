package overlay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
)

// ipEncap is the kernel's light-weight tunnel of a route: packets are wrapped for dst. The library knows only that for
// IPv6.
type ipEncap struct {
	id       uint64 // the VNI
	dst, src netip.Addr
}

// Of linux/lwtunnel.h.
const (
	lwtunnelIPID  = 1
	lwtunnelIPDst = 2
	lwtunnelIPSrc = 3
)

// Type implements netlink.Encap.
func (e *ipEncap) Type() int { return nl.LWTUNNEL_ENCAP_IP }

// Encode implements netlink.Encap.
func (e *ipEncap) Encode() ([]byte, error) {
	out := nl.NewRtAttr(lwtunnelIPID, binary.BigEndian.AppendUint64(nil, e.id)).Serialize()
	out = append(out, nl.NewRtAttr(lwtunnelIPDst, e.dst.AsSlice()).Serialize()...)
	if e.src.IsValid() {
		out = append(out, nl.NewRtAttr(lwtunnelIPSrc, e.src.AsSlice()).Serialize()...)
	}
	return out, nil
}

// Decode implements netlink.Encap. The library does not call it for this type.
func (e *ipEncap) Decode([]byte) error { return errors.New("not supported") }

// String implements netlink.Encap.
func (e *ipEncap) String() string { return fmt.Sprintf("ip id %d src %s dst %s", e.id, e.src, e.dst) }

// Equal implements netlink.Encap.
func (e *ipEncap) Equal(x netlink.Encap) bool {
	o, ok := x.(*ipEncap)
	return ok && *o == *e
}
