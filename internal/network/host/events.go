package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// WatchLinks calls changed when forwarding is switched off for the whole host, lo is taken down, or also says so of an
// event, until ctx ends or nothing can be heard any more. started is called once nothing is missed.
func WatchLinks(ctx context.Context, also func(syscall.NetlinkMessage) bool, started, changed func()) error {
	return hear(ctx, []uint{unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_NETCONF},
		func(m syscall.NetlinkMessage) bool { return switchedOff(m) || also(m) }, started, changed)
}

// WatchAddresses calls changed when an address of the host, or a route that leads to more than one address, may be another,
// until ctx ends or nothing can be heard any more. started is called once nothing is missed.
func WatchAddresses(ctx context.Context, started, changed func()) error {
	return hear(ctx, []uint{unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE}, readdressed, started, changed)
}

// readdressed says whether an event is about an address, or a route to a network: pods come and go with routes to one address each.
func readdressed(m syscall.NetlinkMessage) bool {
	switch m.Header.Type {
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return true
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return len(m.Data) >= unix.SizeofRtMsg && nl.DeserializeRtMsg(m.Data).Dst_len < 32
	}
	return false
}

// hear calls changed for the events of groups of which matters says so, and when some may have been missed.
func hear(ctx context.Context, groups []uint, matters func(syscall.NetlinkMessage) bool, started, changed func()) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("network: events of settings: %w", err)
	}
	f := os.NewFile(uintptr(fd), "netlink")
	defer f.Close()
	var mask uint32
	for _, g := range groups {
		mask |= 1 << (g - 1)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: mask}); err != nil {
		return fmt.Errorf("network: events of settings: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { f.Close() })
	defer stop()
	started()
	for buf := make([]byte, 16<<10); ; {
		size, err := f.Read(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // as ENOBUFS: some may have been missed
			changed()
			return fmt.Errorf("network: events of settings: %w", err)
		}
		list, err := syscall.ParseNetlinkMessage(buf[:size])
		if err != nil {
			return fmt.Errorf("network: events of settings: %w", err)
		}
		for _, m := range list {
			if matters(m) {
				changed()
			}
		}
	}
}

// switchedOff says whether an event tells that forwarding is off, or lo down.
func switchedOff(m syscall.NetlinkMessage) bool {
	switch m.Header.Type {
	case unix.RTM_NEWLINK:
		return len(m.Data) >= unix.SizeofIfInfomsg && linkFlags(m.Data)&unix.IFF_LOOPBACK != 0 && linkFlags(m.Data)&unix.IFF_UP == 0
	case unix.RTM_NEWNETCONF:
		return forwardingOff(m.Data)
	}
	return false
}

// ChangedLink is the name of the link that an event is about; empty if it is about something else.
func ChangedLink(m syscall.NetlinkMessage) string {
	if m.Header.Type != unix.RTM_NEWLINK && m.Header.Type != unix.RTM_DELLINK || len(m.Data) < unix.SizeofIfInfomsg {
		return ""
	}
	attrs, err := nl.ParseRouteAttr(m.Data[unix.SizeofIfInfomsg:])
	if err != nil {
		return ""
	}
	for _, a := range attrs {
		if a.Attr.Type == unix.IFLA_IFNAME {
			return string(bytes.TrimRight(a.Value, "\x00"))
		}
	}
	return ""
}

func linkFlags(msg []byte) uint32 { return nl.DeserializeIfInfomsg(msg).Flags }

// Of linux/netconf.h: which interface a message is about, where -1 is the whole host, and what it is set to. They
// follow a header of one byte, aligned to four.
const (
	netconfHeader     = 4
	netconfIfindex    = 1
	netconfForwarding = 2
)

func forwardingOff(msg []byte) bool {
	if len(msg) < netconfHeader {
		return false
	}
	attrs, err := nl.ParseRouteAttr(msg[netconfHeader:])
	if err != nil {
		return false
	}
	all, off := false, false
	for _, a := range attrs {
		if len(a.Value) < 4 {
			continue
		}
		switch value := int32(binary.NativeEndian.Uint32(a.Value)); a.Attr.Type {
		case netconfIfindex:
			all = value == -1
		case netconfForwarding:
			off = value == 0
		}
	}
	return all && off
}
