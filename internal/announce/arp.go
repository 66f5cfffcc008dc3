package announce

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// Of RFC 826, for IPv4 on Ethernet: the header of the frame, and of what is in it.
const (
	frameSize   = 14 + 28
	typeARP     = 0x0806
	typeIPv4    = 0x0800
	ethernet    = 1
	opRequest   = 1
	opReply     = 2
	hardwareLen = 6
	addressLen  = 4
)

var everybody = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// packet is what one of them says: that a sender is there, and who is asked for or told.
type packet struct {
	op       uint16
	sender   net.HardwareAddr
	address  netip.Addr // of the sender
	target   net.HardwareAddr
	targeted netip.Addr
}

// parse reads a frame; false if it is no such packet.
func parse(b []byte) (p packet, ok bool) {
	if len(b) < frameSize || binary.BigEndian.Uint16(b[12:]) != typeARP {
		return p, false
	}
	b = b[14:]
	if binary.BigEndian.Uint16(b) != ethernet || binary.BigEndian.Uint16(b[2:]) != typeIPv4 || b[4] != hardwareLen || b[5] != addressLen {
		return p, false
	}
	return packet{op: binary.BigEndian.Uint16(b[6:]), sender: net.HardwareAddr(b[8:14:14]), address: netip.AddrFrom4([4]byte(b[14:18])),
		target: net.HardwareAddr(b[18:24:24]), targeted: netip.AddrFrom4([4]byte(b[24:28]))}, true
}

// frame writes a packet, to one host or to all.
func (p packet) frame(to net.HardwareAddr) []byte {
	b := make([]byte, 0, frameSize)
	b = append(append(b, to...), p.sender...)
	b = binary.BigEndian.AppendUint16(b, typeARP)
	b = binary.BigEndian.AppendUint16(b, ethernet)
	b = binary.BigEndian.AppendUint16(b, typeIPv4)
	b = append(b, hardwareLen, addressLen)
	b = binary.BigEndian.AppendUint16(b, p.op)
	b = append(append(b, p.sender...), p.address.AsSlice()...)
	return append(append(b, p.target...), p.targeted.AsSlice()...)
}

// answer is the frame with which a host with this hardware address answers for ours; nil if the packet asks for none of them. Who
// looks whether an address is free (RFC 5227) asks from no address, and is told, too.
func (p packet) answer(own net.HardwareAddr, ours func(netip.Addr) bool) []byte {
	if p.op != opRequest || !ours(p.targeted) || p.address == p.targeted {
		return nil
	}
	return packet{op: opReply, sender: own, address: p.targeted, target: p.sender, targeted: p.address}.frame(p.sender)
}

// unasked are the frames that tell all neighbours where an address is now: some heed only the one form, some the other.
func unasked(a netip.Addr, own net.HardwareAddr) [][]byte {
	return [][]byte{
		packet{op: opRequest, sender: own, address: a, target: make(net.HardwareAddr, hardwareLen), targeted: a}.frame(everybody),
		packet{op: opReply, sender: own, address: a, target: everybody, targeted: a}.frame(everybody),
	}
}
