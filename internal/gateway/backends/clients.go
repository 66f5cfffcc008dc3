package backends

import (
	"hash/fnv"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxClients is how many clients a pool remembers. Further ones get the endpoint that their address chooses, as at first.
const maxClients = 65536

// clients is which endpoint each client stays with, of a pool with sessionAffinity ClientIP.
type clients struct {
	mu   sync.Mutex
	seen map[netip.Addr]seen
}

type seen struct {
	address string
	until   int64
}

// of is the number of the endpoint for a client: the one that it had, if that is still there and the client has come lately; or else the
// one that its address chooses, which is the same at every gateway and does not change when other endpoints come or go.
func (c *clients) of(client netip.Addr, list []*Endpoint, lasts time.Duration) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := now()
	i := -1
	if had, ok := c.seen[client]; ok && t < had.until {
		i = slices.IndexFunc(list, func(e *Endpoint) bool { return e.Address == had.address })
	}
	if i < 0 {
		i = chosen(client, list)
	}
	if c.seen == nil {
		c.seen = map[netip.Addr]seen{}
	}
	if _, ok := c.seen[client]; !ok && len(c.seen) >= maxClients {
		for a, s := range c.seen {
			if s.until <= t {
				delete(c.seen, a)
			}
		}
	}
	if _, ok := c.seen[client]; ok || len(c.seen) < maxClients {
		c.seen[client] = seen{list[i].Address, t + int64(lasts)}
	}
	return i
}

// forget forgets all.
func (c *clients) forget() {
	c.mu.Lock()
	c.seen = nil
	c.mu.Unlock()
}

// chosen is the endpoint with which an address weighs most (rendezvous hashing).
func chosen(client netip.Addr, list []*Endpoint) (best int) {
	var most uint64
	for i, e := range list {
		h := fnv.New64a()
		h.Write(client.AsSlice())  //nolint:errcheck // it cannot fail
		h.Write([]byte(e.Address)) //nolint:errcheck // as above
		x := h.Sum64()             // whose high bits are alike for addresses that are: mix them
		x = (x ^ x>>33) * 0xff51afd7ed558ccd
		if x ^= x >> 33; i == 0 || x > most {
			best, most = i, x
		}
	}
	return best
}
