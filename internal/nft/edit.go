package nft

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Edit is a change of a table: what it has is carried out in the order of its fields, as one transaction.
type Edit struct {
	Sets     []Set     // made, if they are not there; their elements are not looked at
	Removed  []Element // all have to be there
	Chains   []Chain   // made, or their rules replaced; a base chain that is there keeps its hook
	Added    []Element
	Gone     []string // chains to which nothing leads any more but each other and elements of GoneSets
	GoneSets []string // sets to which no rule refers any more
}

// Empty reports whether there is nothing to do.
func (e Edit) Empty() bool {
	return len(e.Sets)+len(e.Removed)+len(e.Chains)+len(e.Added)+len(e.Gone)+len(e.GoneSets) == 0
}

// buffers is the size to which a socket's buffers may grow: a batch is sent as one message, and each of its parts is
// acknowledged.
const buffers = 256 << 20

// sockets is one connection to the kernel, and the ports of all there were: events that these have caused are our own.
type sockets struct {
	mu   sync.Mutex
	conn *nftables.Conn
	own  map[uint32]bool
}

// do sends what queue queues as one transaction.
func (s *sockets) do(queue func(c *nftables.Conn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		c, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(s.enlarge, s.note))
		if err != nil {
			return fmt.Errorf("nftables: %w", err)
		}
		s.conn = c
	}
	err := queue(s.conn)
	if err == nil {
		err = s.conn.Flush()
	}
	if err != nil { // what is still queued or unread would be taken for the next one's
		s.conn.CloseLasting() //nolint:errcheck // nothing is lost by it
		s.conn = nil
	}
	return err
}

func (s *sockets) enlarge(c *netlink.Conn) error {
	return errors.Join(c.SetReadBuffer(buffers), c.SetWriteBuffer(buffers))
}

func (s *sockets) note(c *netlink.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var port uint32
	err2 := raw.Control(func(fd uintptr) {
		var sa unix.Sockaddr
		if sa, err = unix.Getsockname(int(fd)); err == nil {
			port = sa.(*unix.SockaddrNetlink).Pid
		}
	})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if s.own == nil {
		s.own = map[uint32]bool{}
	}
	s.own[port] = true
	return nil
}

func (s *sockets) isOwn(port uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[port]
}

// Edit implements Ruleset.
func (k *Kernel) Edit(name string, e Edit) error {
	if e.Empty() {
		return nil
	}
	if err := k.sockets.do(func(c *nftables.Conn) error { return e.queue(c, table(name)) }); err != nil {
		return fmt.Errorf("nftables: table %s: %w", name, err)
	}
	return nil
}

func (e Edit) queue(c *nftables.Conn, t *nftables.Table) error {
	for _, s := range e.Sets {
		set, err := s.kernel(t)
		if err == nil {
			err = c.AddSet(set, nil)
		}
		if err != nil {
			return fmt.Errorf("set %s: %w", s.Name, err)
		}
	}
	if err := queueElements(e.Removed, t, c.SetDeleteElements); err != nil {
		return err
	}
	for _, ch := range e.Chains { // all of them before the rules that lead to them
		c.AddChain(ch.kernel(t))
	}
	for _, ch := range e.Chains {
		chain := &nftables.Chain{Table: t, Name: ch.Name}
		c.FlushChain(chain)
		for _, r := range ch.Rules {
			c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: r.exprs()})
		}
	}
	if err := queueElements(e.Added, t, c.SetAddElements); err != nil {
		return err
	}
	for _, name := range e.Gone { // they may lead to each other
		c.FlushChain(&nftables.Chain{Table: t, Name: name})
	}
	for _, name := range e.GoneSets { // before the chains, to which their elements may lead
		c.DelSet(&nftables.Set{Table: t, Name: name})
	}
	for _, name := range e.Gone {
		c.DelChain(&nftables.Chain{Table: t, Name: name})
	}
	return nil
}

// queueElements queues elements by set, in messages that are not too long.
func queueElements(list []Element, t *nftables.Table, queue func(*nftables.Set, []nftables.SetElement) error) error {
	bySet := map[string][]Element{}
	for _, e := range list {
		bySet[e.Set] = append(bySet[e.Set], e)
	}
	for name, list := range bySet {
		if slices.ContainsFunc(list, func(e Element) bool { return e.End }) { // the kernel takes ranges in order only
			slices.SortFunc(list, func(a, b Element) int { return bytes.Compare(a.Key, b.Key) })
		}
		set := &nftables.Set{Table: t, Name: name, IsMap: list[0].Goto != "" || len(list[0].Value) > 0}
		for part := range slices.Chunk(list, perMessage) {
			if err := queue(set, kernelElements(part)); err != nil {
				return fmt.Errorf("set %s: %w", name, err)
			}
		}
	}
	return nil
}
