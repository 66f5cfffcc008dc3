package roles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"minik8s/internal/membership"
	"minik8s/internal/store/etcd"
)

// others implements etcd.Others: it asks the other masters' APIs, as a master.
type others struct{ d *Daemon }

var _ etcd.Others = others{}

func (d *Daemon) others() others { return others{d} }

const (
	// askTimeout bounds one question to another master.
	askTimeout = 3 * time.Second
	// askMore is how long others may take to answer after the first has: the members of an older cluster than the others'
	// may be among them.
	askMore = 200 * time.Millisecond
)

// Members implements etcd.Others. Of several answers that with the highest revision counts.
func (o others) Members(ctx context.Context, servers []string) (ids []uint64, revision int64, err error) {
	servers = o.candidates(servers)
	type answer struct {
		membership.List
		err error
	}
	answers := make(chan answer, len(servers))
	for _, s := range servers {
		go func() {
			list, err := o.ask(ctx, s)
			answers <- answer{list, err}
		}()
	}
	best, errs, enough := membership.List{}, []error(nil), (<-chan time.Time)(nil)
	for range servers {
		select {
		case a := <-answers:
			if errs = append(errs, a.err); a.err != nil {
				continue
			}
			if a.Revision > best.Revision {
				best = a.List
			}
			if enough == nil {
				enough = time.After(askMore)
			}
			continue
		case <-enough:
		}
		break
	}
	if best.Revision == 0 {
		return nil, 0, fmt.Errorf("no other master answers: %w", errors.Join(errs...))
	}
	for _, m := range best.Members {
		id, err := strconv.ParseUint(m.ID, 16, 64)
		if err != nil {
			return nil, 0, err
		}
		ids = append(ids, id)
	}
	return ids, best.Revision, nil
}

// Admit implements etcd.Others. Each is asked in turn until one admits this machine, or refuses it for good.
func (o others) Admit(ctx context.Context, servers []string) (members []string, err error) {
	if servers = o.candidates(servers); len(servers) == 0 {
		return nil, errors.New("no other master is known: give one with --server")
	}
	err = o.d.untilFinal(ctx, "the other masters' consent", func() error {
		var errs []error
		for _, s := range servers {
			c, err := o.client(s)
			if err != nil {
				return err
			}
			if members, err = c.Admit(ctx, o.d.request(), false); err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	return members, err
}

// candidates are the other masters' servers, with that of --server.
func (o others) candidates(servers []string) []string {
	servers = slices.Clone(servers)
	if o.d.joins() {
		servers = append(servers, o.d.cfg.Server)
	}
	slices.Sort(servers)
	servers = slices.Compact(servers)
	return slices.DeleteFunc(servers, func(s string) bool { return s == "https://"+o.d.apiAddress() })
}

// ask has another master list the members that it and a majority agree on.
func (o others) ask(ctx context.Context, server string) (membership.List, error) {
	c, err := o.client(server)
	if err != nil {
		return membership.List{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := c.List(ctx, true)
	if err == nil && list.Revision == 0 {
		err = fmt.Errorf("%s has no majority", server)
	}
	return list, err
}

func (o others) client(server string) (*membership.Client, error) {
	cert, err := o.d.creds.admin.ForClient(nil)
	return &membership.Client{Server: server, CA: o.d.creds.trust, Cert: cert}, err
}
