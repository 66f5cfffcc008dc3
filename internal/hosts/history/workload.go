package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// think is how long a client waits between two requests at most, and backOff how long after a failure: a master that is
	// away is not asked in a tight loop.
	think   = 20 * time.Millisecond
	backOff = 50 * time.Millisecond
	// objects is how many there are in a round: few, so that clients meet.
	objects = 6
)

// patiences is how long a client waits for an answer, one of them by chance. A master itself answers after 5 s that it has
// no majority.
var patiences = []time.Duration{500 * time.Millisecond, 2 * time.Second, 7 * time.Second}

func key(round, i int) string { return fmt.Sprintf("r%d-%d", round, i) }

// client makes requests, one after the other.
type client struct {
	id    int
	call  *caller
	h     *History
	dice  *rand.Rand
	count int
	// seen is the newest version of each object that it knows of.
	seen map[string]Item
}

// run makes requests until ctx ends. The last one is waited for.
func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		o := c.next()
		c.send(o)
		pause := think
		if o.Outcome != OK && o.Code != http.StatusNotFound && o.Code != http.StatusConflict {
			pause += backOff
		}
		sleep(ctx, time.Duration(c.dice.Int64N(int64(pause))))
	}
}

// next draws a request. An object is created when the client believes that there is none.
func (c *client) next() *Op {
	c.count++
	o := &Op{Client: c.id, Key: key(c.h.Round, c.dice.IntN(objects))}
	have := c.seen[o.Key]
	switch n := c.dice.IntN(100); {
	case n < 20:
		o.Kind = Get
	case n < 24:
		o.Kind, o.Key = List, ""
	case have.Revision == 0:
		o.Kind = Create
	case n < 30: // though there is one already, as far as it knows
		o.Kind = Create
	case n < 55:
		o.Kind, o.Version = Update, have.Revision
	case n < 75:
		o.Kind = Replace
	case n < 88:
		o.Kind = Delete
	default:
		o.Kind, o.Version = Delete, have.Revision
	}
	if o.Kind == Create || o.Kind == Update || o.Kind == Replace {
		o.Value = fmt.Sprintf("c%d-%d", c.id, c.count)
	}
	return o
}

// send makes a request and records it.
func (c *client) send(o *Op) {
	ctx, cancel := context.WithTimeout(context.Background(), patiences[c.dice.IntN(len(patiences))])
	defer cancel()
	c.call.do(ctx, c.h.now, o)
	if o.Kind == List {
		o.Items = ours(c.h.Round, o.Items)
	}
	c.h.add(o)
	switch {
	case o.Outcome == OK && (o.Kind == Delete) || o.Code == http.StatusNotFound:
		delete(c.seen, o.Key)
	case o.Outcome == OK && o.Kind != List:
		c.seen[o.Key] = o.Read
	case o.Code == http.StatusConflict:
		c.seen[o.Key] = Item{Key: o.Key, Revision: 1} // something: the next change fails, or a Get tells
	}
	for _, it := range o.Items {
		c.seen[it.Key] = it
	}
}

// ours are the objects of a round.
func ours(round int, all []Item) []Item {
	var out []Item
	for _, it := range all {
		if of(round, it.Key) {
			out = append(out, it)
		}
	}
	return out
}

func of(round int, key string) bool {
	var r int
	_, err := fmt.Sscanf(key, "r%d-", &r)
	return err == nil && r == round
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
