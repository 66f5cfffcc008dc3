package nft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Watch calls changed after every change of any nftables ruleset in the network namespace of the calling thread, its
// own included, until ctx ends, which is not an error. Events that the kernel could not queue count as a change.
// started is called once no later change can be missed.
func Watch(ctx context.Context, started, changed func()) error {
	return watch(ctx, func(netlink.Message) bool { return true }, started, changed)
}

// WatchBut is Watch for changes of all tables but those of family ip whose names have a prefix: for who has no interest in a
// table that changes often.
func WatchBut(ctx context.Context, prefix string, started, changed func()) error {
	return watch(ctx, func(m netlink.Message) bool {
		name, ok := tableOf(m)
		return ok && !strings.HasPrefix(name, prefix)
	}, started, changed)
}

// WatchTable is Watch for changes of one table that others have made: not by Edit and Sync.
func (k *Kernel) WatchTable(ctx context.Context, name string, started, changed func()) error {
	return watch(ctx, func(m netlink.Message) bool {
		of, ok := tableOf(m)
		return ok && of == name && !k.sockets.isOwn(m.Header.PID)
	}, started, changed)
}

// tableOf is the table that an event is about; of another family than ip its name is empty. ok is false for an event that only
// ends those of a batch.
func tableOf(m netlink.Message) (name string, ok bool) {
	if m.Header.Type == unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN {
		return "", false
	}
	if len(m.Data) < 4 || m.Data[0] != unix.NFPROTO_IPV4 {
		return "", true
	}
	attrs, err := netlink.UnmarshalAttributes(m.Data[4:])
	if err != nil {
		return "", true
	}
	for _, a := range attrs { // the table's name has the same type in all of them
		if a.Type == unix.NFTA_TABLE_NAME {
			return strings.TrimRight(string(a.Data), "\x00"), true
		}
	}
	return "", true
}

func watch(ctx context.Context, counts func(netlink.Message) bool, started, changed func()) error {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return fmt.Errorf("nftables: events: %w", err)
	}
	defer c.Close()
	if err := c.JoinGroup(unix.NFNLGRP_NFTABLES); err != nil {
		return fmt.Errorf("nftables: events: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	started()
	for {
		list, err := c.Receive()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, syscall.ENOBUFS):
			return fmt.Errorf("nftables: events: %w", err)
		}
		if err != nil || slices.ContainsFunc(list, counts) {
			changed()
		}
	}
}
