package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"minik8s/internal/hosts"
)

// team are those who use the masters in a round.
type team struct {
	h        *History
	calls    []*caller
	judges   []*caller // for the lists at the end
	clients  []*client
	watchers []*watcher
}

const clientsOfNetwork = 3 // of each master; one more is on its own host, where no cut reaches it

func newTeam(ctx context.Context, lab *hosts.Lab, masters []*hosts.Host, h *History, o Options) (*team, error) {
	t := &team{h: h}
	call := func(m *hosts.Host, dial dialer) (*caller, error) {
		c, err := newCaller(m, dial)
		if err == nil {
			t.calls = append(t.calls, c)
		}
		return c, err
	}
	who := 1
	var roaming, listing []*caller
	for _, m := range masters {
		for i := range clientsOfNetwork + 1 {
			dial := lab.Dial
			if i == clientsOfNetwork {
				dial = m.Dial
			}
			c, err := call(m, dial)
			if err != nil {
				return t, err
			}
			t.clients = append(t.clients, &client{id: who, call: c, h: h, dice: dice(o, h.Round, who), seen: map[string]Item{}})
			who++
		}
		for i := range 4 { // a watcher, two that go round all masters, a judge
			c, err := call(m, lab.Dial)
			if err != nil {
				return t, err
			}
			switch i {
			case 0:
				t.watchers = append(t.watchers, &watcher{id: who, calls: []*caller{c}, h: h, dice: dice(o, h.Round, who)})
				who++
			case 1:
				roaming = append(roaming, c)
			case 2:
				listing = append(listing, c)
			default:
				t.judges = append(t.judges, c)
			}
		}
	}
	t.watchers = append(t.watchers, &watcher{id: who, calls: roaming, h: h, dice: dice(o, h.Round, who)},
		&watcher{id: who + 1, calls: listing, lists: true, h: h, dice: dice(o, h.Round, who+1)})
	start, err := t.list(ctx, t.judges[0])
	if err != nil {
		return t, err
	}
	h.Start = start.Revision
	for _, w := range t.watchers {
		w.reached.Store(h.Start)
	}
	return t, nil
}

func (t *team) close() {
	for _, c := range t.calls {
		c.close()
	}
}

// list reads all objects of the round, as often as it takes.
func (t *team) list(ctx context.Context, c *caller) (*Op, error) {
	for end := time.Now().Add(settleLimit); ; sleep(ctx, backOff) {
		o := &Op{Kind: List}
		one, cancel := context.WithTimeout(ctx, patiences[1])
		c.do(one, t.h.now, o)
		cancel()
		o.Items = ours(t.h.Round, o.Items)
		if o.Outcome == OK {
			return o, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return o, fmt.Errorf("%s gives no list %s after the last fault: %s", c.host.Name, settleLimit, o)
		}
	}
}

// settle makes one more write, reads all from each master, and waits until each watcher has come that far.
func (t *team) settle(ctx context.Context) error {
	last := t.clients[0]
	var o *Op
	for end := time.Now().Add(settleLimit); ; sleep(ctx, backOff) {
		last.count++
		o = &Op{Client: last.id, Kind: Create, Key: fmt.Sprintf("r%d-end-%d", t.h.Round, last.count), Value: fmt.Sprintf("c%d-%d", last.id, last.count)}
		if last.send(o); o.Outcome == OK {
			break
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%s takes no write %s after the last fault: %s", o.Master, settleLimit, o)
		}
	}
	for _, c := range t.judges {
		f, err := t.list(ctx, c)
		t.h.Finals = append(t.h.Finals, f)
		if err != nil {
			return err
		}
	}
	for end := time.Now().Add(settleLimit); ; sleep(ctx, 10*time.Millisecond) {
		behind := slices.IndexFunc(t.watchers, func(w *watcher) bool { return w.reached.Load() < o.Read.Revision })
		if behind < 0 {
			return nil
		}
		if w := t.watchers[behind]; time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("watcher %d has come to revision %d in %s, and the last write has %d", w.id, w.reached.Load(), settleLimit, o.Read.Revision)
		}
	}
}
