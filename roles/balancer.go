package roles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"sync/atomic"
	"time"

	"minik8s/config"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/balancer"
	"minik8s/internal/client"
	"minik8s/internal/client/fallback"
	"minik8s/internal/client/remote"
	"minik8s/internal/informer"
	"minik8s/internal/masters"
)

// findMasters reads where the masters were last, and makes what leads to them; on a master, to the others. The error says
// that a server is needed, if a worker knows none.
func (d *Daemon) findMasters() (err error) {
	if d.masters, err = masters.Open(d.path("masters.json")); errors.As(err, new(*fs.PathError)) {
		return fmt.Errorf("the data directory: %w; run as root, or choose another with --data-dir", err)
	} else if err != nil {
		return err
	}
	known, server := d.masters.Masters(), d.cfg.Server
	if d.cfg.Has(config.Master) { // the server is for joining
		d.balancer = balancer.New(balancer.Config{Upstreams: known, Log: d.log})
		return nil
	}
	if server == "" && len(known) == 0 {
		return errors.New("role: a worker alone joins a master: the first time give its API with --server=https://HOST:6443, and a --token")
	}
	d.balancer = balancer.New(balancer.Config{Upstreams: known, Resort: addressIn(server), Log: d.log})
	return nil
}

// newOthers makes what tells the balancer of the masters; on a master, of the others.
func (d *Daemon) newOthers(machines *informer.Informer[*minik8s.Peer]) *masters.Follower {
	return masters.New(d.masters, machines, d.announcedAPI(), d.balancer.Set, d.log)
}

// addressIn is the HOST:PORT of a server's URL; config has added the port.
func addressIn(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Host
}

// someMaster is the URL of a master, of a machine that is none.
func (d *Daemon) someMaster() string {
	if d.cfg.Server == "" && !d.cfg.Has(config.Master) && len(d.masters.Masters()) > 0 {
		return "https://" + d.masters.Masters()[0]
	}
	return d.cfg.Server
}

// avoidMaster has this machine's kubelet ask another master than the one that it asks now.
func (d *Daemon) avoidMaster() {
	if d.front != nil {
		d.front.Useless()
		return
	}
	d.balancer.Avoid()
}

// newFront makes the client of a master's own kubelet: for the API in this process while that is of use, and else for
// another master's, by the same port that clients on this machine use. What it does in the background ends with ctx.
func (d *Daemon) newFront(ctx context.Context) *fallback.Client {
	var others atomic.Pointer[remote.Client]
	return fallback.New(ctx, fallback.Config{Log: d.log, Well: d.useful, Leave: d.balancer.Avoid,
		First: func() client.Interface {
			if own := d.loaded.Load(); own != nil {
				return own
			}
			return nil
		},
		Second: func() client.Interface {
			if len(d.balancer.Upstreams()) == 0 {
				return nil
			}
			if others.Load() == nil {
				c, err := remote.New(remote.Config{Server: d.ownServer(), CA: d.ca.Cert, Identity: d.creds.node.ForClient, UserAgent: "minik8sd"})
				if err != nil {
					d.log.Error("other masters cannot be asked", "error", err)
					return nil
				}
				others.Store(c)
			}
			return others.Load()
		}})
}

// usefulFor is how long it is remembered that the own API is of use: so that many connections do not ask the store each.
const usefulFor = 100 * time.Millisecond

// useful reports whether this master's own API does what it is for: it serves, and a majority of the masters is there.
func (d *Daemon) useful() bool {
	if !d.serving.Load() {
		return false
	}
	d.asked.Lock()
	defer d.asked.Unlock()
	if time.Since(d.asked.at) > usefulFor {
		d.asked.useful = d.answers()
		d.asked.at = time.Now()
	}
	return d.asked.useful
}

// answers reports whether the store knows how far it is.
func (d *Daemon) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	_, err := d.store.Revision(ctx)
	return err == nil
}

// runDoor accepts connections to this master's API.
func (d *Daemon) runDoor(ctx context.Context, ready func()) error {
	d.door = newDoor(ctx, d.listener, d.balancer, d.useful)
	ready()
	return d.door.run()
}

// runBalancer leads connections to the masters.
func (d *Daemon) runBalancer(ctx context.Context, ready func()) error {
	ready()
	return d.balancer.Serve(ctx, d.listener)
}

// knownMasters are the masters' addresses, HOST:PORT: those that the cluster names, or else the one that was given.
func (d *Daemon) knownMasters() []string {
	if list := d.balancer.Upstreams(); len(list) > 0 {
		return list
	}
	return []string{addressIn(d.cfg.Server)}
}
