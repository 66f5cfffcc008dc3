package slurmtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// NetNS is the path of the cluster's network namespace.
func (c *Cluster) NetNS() string { return fmt.Sprintf("/proc/%d/ns/net", c.pid) }

// DialContext connects from within the cluster's network namespace.
func (c *Cluster) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine, since it is in another namespace
		ns, err := os.Open(c.NetNS())
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{nil, err}
			return
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}
