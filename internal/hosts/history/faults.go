package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"minik8s/internal/hosts"
	"minik8s/internal/membership"
)

// driver does faults to masters by chance. Each fault is undone before it returns, though a master may still be starting
// when the next one comes; so a majority is never away for good.
type driver struct {
	masters []*hosts.Host
	seed    func(n int) *rand.Rand
	dice    *rand.Rand // of this fault: what one draws does not change the next
	done    int
	long    bool
	h       *History
	count   map[string]int
}

// readyLimit is how long all masters may take to be ready after a fault.
const readyLimit = 60 * time.Second

// kind is a kind of fault, and how often it comes compared with others.
type kind struct {
	name   string
	chance int
	do     func(d *driver, ctx context.Context, h *hosts.Host) error
}

var kinds = []kind{
	{"kill", 28, (*driver).kill},
	{"kill all", 4, (*driver).killAll},
	{"freeze", 24, (*driver).freeze},
	{"cut", 12, loses(hosts.Both, 100)},
	{"cut from", 8, loses(hosts.From, 100)},
	{"cut to", 8, loses(hosts.To, 100)},
	{"loss", 10, (*driver).loss},
	{"part", 8, (*driver).part},
	{"delay", 6, (*driver).delay},
	{"freeze, and kill another", 6, (*driver).freezeAndKill},
	{"replace", 3, (*driver).replace},
}

// longKinds take more time than a test has.
var longKinds = []kind{{"away for long", 4, (*driver).longAway}}

// fault does one.
func (d *driver) fault(ctx context.Context) error {
	d.done++
	d.dice = d.seed(d.done)
	all := kinds
	if d.long {
		all = slices.Concat(kinds, longKinds)
	}
	total := 0
	for _, k := range all {
		total += k.chance
	}
	n := d.dice.IntN(total)
	for _, k := range all {
		if n -= k.chance; n >= 0 {
			continue
		}
		h := d.target(ctx)
		d.count[k.name]++
		if err := k.do(d, ctx, h); err != nil {
			return fmt.Errorf("%s %s: %w", k.name, h.Name, err)
		}
		break
	}
	for _, h := range d.masters {
		if !h.Running() {
			return fmt.Errorf("%s has ended by itself:\n%s", h.Name, last(h.Said()))
		}
	}
	// Mostly the next fault meets a whole cluster, sometimes one that is not back yet.
	if d.dice.IntN(4) > 0 {
		return ready(ctx, d.masters)
	}
	d.pause(ctx, 0, 300)
	return nil
}

// last is the end of what a daemon has said.
func last(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// target is the leader half of the time.
func (d *driver) target(ctx context.Context) *hosts.Host {
	leads, h := d.dice.IntN(2) == 0, d.masters[d.dice.IntN(len(d.masters))]
	if !leads {
		return h
	}
	if l := leader(ctx, d.masters); l != nil {
		return l
	}
	return h
}

// leader is the master that leads as one of them says; nil if none does.
func leader(ctx context.Context, masters []*hosts.Host) *hosts.Host {
	for _, asked := range masters {
		list, err := members(ctx, asked)
		if err != nil {
			continue
		}
		for _, m := range list {
			for _, h := range masters {
				if m.Role == membership.Leader && m.Name == h.Name {
					return h
				}
			}
		}
	}
	return nil
}

// members are the masters as one of them says.
func members(ctx context.Context, h *hosts.Host) (list []membership.Member, err error) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	c, err := h.API()
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(ctx, http.MethodGet, membership.Path, nil, "", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	var all membership.List
	err = json.NewDecoder(resp.Body).Decode(&all)
	return all.Members, err
}

// pause waits for a time by chance, in milliseconds.
func (d *driver) pause(ctx context.Context, from, to int) {
	sleep(ctx, time.Duration(from+d.dice.IntN(to-from))*time.Millisecond)
}

func (d *driver) note(format string, args ...any) { d.h.addFault(fmt.Sprintf(format, args...)) }

func (d *driver) kill(ctx context.Context, h *hosts.Host) error {
	d.note("kill %s", h.Name)
	if err := h.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	d.pause(ctx, 0, 600)
	d.note("start %s", h.Name)
	return h.Start()
}

func (d *driver) killAll(ctx context.Context, _ *hosts.Host) error {
	var errs []error
	d.note("kill all")
	for _, h := range d.masters {
		errs = append(errs, h.Signal(syscall.SIGKILL))
	}
	for _, i := range d.dice.Perm(len(d.masters)) {
		d.pause(ctx, 0, 200)
		errs = append(errs, d.masters[i].Start())
	}
	d.note("started all")
	return errors.Join(errs...)
}

func (d *driver) freeze(ctx context.Context, h *hosts.Host) error {
	d.note("freeze %s", h.Name)
	if err := h.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	d.pause(ctx, 20, 1800)
	d.note("thaw %s", h.Name)
	return h.Signal(syscall.SIGCONT)
}

// freezeAndKill has a master wake into a cluster that another one has just left.
func (d *driver) freezeAndKill(ctx context.Context, h *hosts.Host) error {
	other := d.masters[d.dice.IntN(len(d.masters))]
	if other == h {
		return d.freeze(ctx, h)
	}
	d.note("freeze %s", h.Name)
	if err := h.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	d.pause(ctx, 20, 1200)
	d.note("kill %s", other.Name)
	if err := other.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	d.pause(ctx, 0, 100)
	d.note("thaw %s", h.Name)
	err := h.Signal(syscall.SIGCONT)
	d.pause(ctx, 0, 300)
	d.note("start %s", other.Name)
	return errors.Join(err, other.Start())
}

// replace loses a master for good, with its data, removes it, and has a machine that was set up anew take its place. The others
// must be whole: of three, two have what was acknowledged.
func (d *driver) replace(ctx context.Context, h *hosts.Host) error {
	if len(d.masters) < 3 {
		return d.kill(ctx, h)
	}
	if err := errors.Join(ready(ctx, d.masters), whole(ctx, d.masters)); err != nil {
		return err
	}
	other := d.masters[(slices.Index(d.masters, h)+1+d.dice.IntN(len(d.masters)-1))%len(d.masters)]
	d.note("wipe %s", h.Name)
	if err := h.Wipe(); err != nil {
		return err
	}
	d.pause(ctx, 0, 600)
	d.note("remove %s", h.Name)
	for _, args := range [][]string{{"etcd", "remove", h.Name}, {"delete", "node", h.Name}} { // its name was the lost machine's
		if out, err := insist(ctx, other, args...); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	flags, err := joining(ctx, other)
	if err != nil {
		return err
	}
	d.pause(ctx, 0, 300)
	d.note("%s joins anew", h.Name)
	if err := h.Start(append(flags, "--role=master")...); err != nil {
		return err
	}
	return errors.Join(ready(ctx, d.masters), whole(ctx, d.masters))
}

// longAway has a master be away for longer than a request waits for a majority: alone, it cannot answer its own host's
// clients, and refuses what they ask.
func (d *driver) longAway(ctx context.Context, h *hosts.Host) error {
	d.note("%s loses all for long", h.Name)
	if err := h.Cut(); err != nil {
		return err
	}
	d.pause(ctx, 5000, 8000)
	d.note("heal %s", h.Name)
	return h.Heal()
}

func loses(way hosts.Way, percent int) func(*driver, context.Context, *hosts.Host) error {
	return func(d *driver, ctx context.Context, h *hosts.Host) error { return d.lose(ctx, h, way, percent) }
}

func (d *driver) loss(ctx context.Context, h *hosts.Host) error {
	way := []hosts.Way{hosts.From, hosts.To, hosts.Both}[d.dice.IntN(3)]
	return d.lose(ctx, h, way, 5+d.dice.IntN(50))
}

// part keeps two masters from each other. The one that does not lead then knows of no leader.
func (d *driver) part(ctx context.Context, h *hosts.Host) error {
	other := d.masters[d.dice.IntN(len(d.masters))]
	if other == h {
		return d.lose(ctx, h, hosts.Both, 100)
	}
	d.note("%s and %s are parted", h.Name, other.Name)
	if err := h.Part(other); err != nil {
		return err
	}
	d.pause(ctx, 100, 1800)
	d.note("heal %s", h.Name)
	return h.Heal()
}

// delay has a master be far away.
func (d *driver) delay(ctx context.Context, h *hosts.Host) error {
	by := time.Duration(5+d.dice.IntN(100)) * time.Millisecond
	d.note("%s is %s away", h.Name, by)
	if err := h.Delay(by); err != nil {
		return err
	}
	d.pause(ctx, 100, 1800)
	d.note("heal %s", h.Name)
	return h.Heal()
}

func (d *driver) lose(ctx context.Context, h *hosts.Host, way hosts.Way, percent int) error {
	d.note("%s loses %d%% %s", h.Name, percent, map[hosts.Way]string{hosts.From: "from it", hosts.To: "to it", hosts.Both: "both ways"}[way])
	if err := h.Lose(way, percent); err != nil {
		return err
	}
	d.pause(ctx, 100, 1800)
	d.note("heal %s", h.Name)
	return h.Heal()
}

// ready waits until all masters are.
func ready(ctx context.Context, masters []*hosts.Host) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for _, h := range masters {
		for !h.Ready(ctx) {
			if !h.Running() {
				return fmt.Errorf("%s has ended by itself:\n%s", h.Name, last(h.Said()))
			}
			if sleep(ctx, 10*time.Millisecond); ctx.Err() != nil {
				return fmt.Errorf("%s is not ready %s after the last fault:\n%s", h.Name, readyLimit, last(h.Said()))
			}
		}
	}
	return nil
}
