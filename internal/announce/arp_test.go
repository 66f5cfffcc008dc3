package announce

import (
	"net"
	"net/netip"
	"testing"
)

var (
	own, asking = net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	ours, other = netip.MustParseAddr("10.0.0.200"), netip.MustParseAddr("10.0.0.7")
)

func isOurs(a netip.Addr) bool { return a == ours }

// Who asks for an address of ours is answered, and nobody else: not for others' addresses, not an answer, not who says that it has the
// address, and nothing that is no such packet.
func TestAnswer(t *testing.T) {
	for name, x := range map[string]struct {
		p    packet
		want bool
	}{
		"asked":                        {packet{op: opRequest, sender: asking, address: other, target: make(net.HardwareAddr, 6), targeted: ours}, true},
		"asked whether it is free":     {packet{op: opRequest, sender: asking, address: netip.IPv4Unspecified(), target: make(net.HardwareAddr, 6), targeted: ours}, true},
		"another address":              {packet{op: opRequest, sender: asking, address: other, target: make(net.HardwareAddr, 6), targeted: other}, false},
		"an answer":                    {packet{op: opReply, sender: asking, address: other, target: own, targeted: ours}, false},
		"another one announces itself": {packet{op: opRequest, sender: asking, address: ours, target: make(net.HardwareAddr, 6), targeted: ours}, false},
	} {
		read, ok := parse(x.p.frame(everybody))
		if !ok {
			t.Fatalf("%s: what is written is not read", name)
		}
		frame := read.answer(own, isOurs)
		if (frame != nil) != x.want {
			t.Errorf("%s: %v", name, frame)
		}
		if frame == nil {
			continue
		}
		got, ok := parse(frame)
		if !ok || got.op != opReply || got.sender.String() != own.String() || got.address != ours || got.target.String() != asking.String() ||
			got.targeted != x.p.address || net.HardwareAddr(frame[:6]).String() != asking.String() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	whole := packet{op: opRequest, sender: asking, address: other, target: own, targeted: ours}.frame(everybody)
	for n := range whole {
		if _, ok := parse(whole[:n]); ok {
			t.Errorf("%d bytes are read", n)
		}
	}
	for _, at := range []int{12, 14, 16, 18, 19} { // no ARP, not on Ethernet, not for IPv4, other sizes
		b := append([]byte(nil), whole...)
		if b[at]++; at == 12 {
			b[at] = 9
		}
		if _, ok := parse(b); ok {
			t.Errorf("with another byte %d it is read", at)
		}
	}
	for _, frame := range unasked(ours, own) {
		if p, ok := parse(frame); !ok || p.sender.String() != own.String() || p.address != ours || p.targeted != ours || net.HardwareAddr(frame[:6]).String() != everybody.String() {
			t.Errorf("%+v", p)
		}
	}
}
