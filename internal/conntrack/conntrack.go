package conntrack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Flow is a tracked connection over IPv4.
type Flow struct {
	From, To netip.AddrPort // as its first packet came
	Server   netip.AddrPort // who answers: another than To if the destination was changed
	tuple    []byte
}

// Of linux/netfilter/nfnetlink_conntrack.h.
const (
	msgGet    = unix.NFNL_SUBSYS_CTNETLINK<<8 | 1
	msgDelete = unix.NFNL_SUBSYS_CTNETLINK<<8 | 2

	attrOriginal = 1 // CTA_TUPLE_ORIG
	attrReply    = 2 // CTA_TUPLE_REPLY
	attrFilter   = 25
	tupleIP      = 1
	tupleProto   = 2
	ipSource     = 1
	ipDest       = 2
	protoNumber  = 1
	protoSource  = 2
	protoDest    = 3

	filterOriginal     = 1 // CTA_FILTER_ORIG_FLAGS
	filterReply        = 2 // CTA_FILTER_REPLY_FLAGS
	filterBySource     = 1 << 0
	filterByDest       = 1 << 1
	filterByProto      = 1 << 3
	filterBySourcePort = 1 << 4
	filterByDestPort   = 1 << 5
)

var header = []byte{unix.AF_INET, unix.NFNETLINK_V0, 0, 0}

// End ends the flows of a protocol for which over is true, and returns how many.
func End(protocol byte, over func(Flow) bool) (int, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return 0, fmt.Errorf("conntrack: %w", err)
	}
	defer c.Close()
	flows, err := list(c, protocol)
	if err != nil {
		return 0, fmt.Errorf("conntrack: %w", err)
	}
	n := 0
	var errs []error
	for _, f := range flows {
		if !over(f) {
			continue
		}
		_, err := c.Execute(netlink.Message{
			Header: netlink.Header{Type: msgDelete, Flags: netlink.Request | netlink.Acknowledge},
			Data:   append(header[:4:4], f.tuple...),
		})
		switch {
		case err == nil:
			n++
		case !errors.Is(err, unix.ENOENT): // it has ended by itself
			errs = append(errs, fmt.Errorf("conntrack: %s to %s: %w", f.From, f.To, err))
		}
	}
	return n, errors.Join(errs...)
}

// Find returns the flow that began between two addresses; false if none is tracked.
func Find(protocol byte, from, to netip.AddrPort) (Flow, bool, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return Flow{}, false, fmt.Errorf("conntrack: %w", err)
	}
	defer c.Close()
	flows, err := listBy(c, protocol, filterBySource|filterByDest|filterByProto|filterBySourcePort|filterByDestPort, func(e *netlink.AttributeEncoder) {
		e.Nested(tupleIP, func(e *netlink.AttributeEncoder) error {
			e.Bytes(ipSource, from.Addr().AsSlice())
			e.Bytes(ipDest, to.Addr().AsSlice())
			return nil
		})
		e.Nested(tupleProto, func(e *netlink.AttributeEncoder) error {
			e.ByteOrder = binary.BigEndian
			e.Uint8(protoNumber, protocol)
			e.Uint16(protoSource, from.Port())
			e.Uint16(protoDest, to.Port())
			return nil
		})
	})
	if err != nil {
		return Flow{}, false, fmt.Errorf("conntrack: %w", err)
	}
	for _, f := range flows {
		if f.From == from && f.To == to {
			return f, true, nil
		}
	}
	return Flow{}, false, nil
}

func list(c *netlink.Conn, protocol byte) ([]Flow, error) {
	return listBy(c, protocol, filterByProto, func(e *netlink.AttributeEncoder) {
		e.Nested(tupleProto, func(e *netlink.AttributeEncoder) error { e.Uint8(protoNumber, protocol); return nil })
	})
}

// listBy lists the flows of a protocol whose original direction has these attributes, of which the filter names those that
// count.
func listBy(c *netlink.Conn, protocol byte, filter uint32, original func(*netlink.AttributeEncoder)) ([]Flow, error) {
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	e.Nested(attrOriginal, func(e *netlink.AttributeEncoder) error { original(e); return nil })
	e.Nested(attrFilter, func(e *netlink.AttributeEncoder) error {
		e.ByteOrder = binary.NativeEndian
		e.Uint32(filterOriginal, filter)
		e.Uint32(filterReply, 0)
		return nil
	})
	data, err := e.Encode()
	if err != nil {
		return nil, err
	}
	messages, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: msgGet, Flags: netlink.Request | netlink.Dump},
		Data:   append(header[:4:4], data...),
	})
	if err != nil {
		return nil, err
	}
	var out []Flow
	for _, m := range messages {
		if len(m.Data) < 4 {
			continue
		}
		f, p, err := parse(m.Data[4:])
		if err != nil {
			return nil, err
		}
		if p == protocol { // a kernel that does not know the filter lists all
			out = append(out, f)
		}
	}
	return out, nil
}

func parse(b []byte) (f Flow, protocol byte, err error) {
	attrs, err := netlink.UnmarshalAttributes(b)
	if err != nil {
		return f, 0, err
	}
	for _, a := range attrs {
		switch a.Type &^ netlink.Nested {
		case attrOriginal:
			if f.From, f.To, protocol, err = tuple(a.Data); err != nil {
				return f, 0, err
			}
			a.Type |= netlink.Nested
			if f.tuple, err = netlink.MarshalAttributes([]netlink.Attribute{{Type: a.Type, Data: a.Data}}); err != nil {
				return f, 0, err
			}
		case attrReply:
			if f.Server, _, _, err = tuple(a.Data); err != nil {
				return f, 0, err
			}
		}
	}
	return f, protocol, nil
}

func tuple(b []byte) (from, to netip.AddrPort, protocol byte, err error) {
	var src, dst netip.Addr
	var sport, dport uint16
	d, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return from, to, 0, err
	}
	for d.Next() {
		switch d.Type() {
		case tupleIP:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					switch a, ok := netip.AddrFromSlice(d.Bytes()); {
					case ok && d.Type() == ipSource:
						src = a
					case ok && d.Type() == ipDest:
						dst = a
					}
				}
				return nil
			})
		case tupleProto:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				d.ByteOrder = binary.BigEndian
				for d.Next() {
					switch d.Type() {
					case protoNumber:
						protocol = d.Uint8()
					case protoSource:
						sport = d.Uint16()
					case protoDest:
						dport = d.Uint16()
					}
				}
				return nil
			})
		}
	}
	return netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport), protocol, d.Err()
}
