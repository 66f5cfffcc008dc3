package nft

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Watch calls changed after every change of any nftables ruleset in the network namespace of the calling thread, its
// own included, until ctx ends, which is not an error. Events that the kernel could not queue count as a change.
// started is called once no later change can be missed.
func Watch(ctx context.Context, started, changed func()) error {
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
		_, err := c.Receive()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, syscall.ENOBUFS):
			return fmt.Errorf("nftables: events: %w", err)
		}
		changed()
	}
}
