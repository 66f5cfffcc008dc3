package roles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"

	"minik8s/config"
	"minik8s/internal/balancer"
	"minik8s/internal/masters"
)

// findMasters reads on a worker alone where the masters were last, and makes what leads to them. The error says that a
// server is needed, if none is known.
func (d *Daemon) findMasters() (err error) {
	if d.cfg.Has(config.Master) {
		return nil
	}
	if d.masters, err = masters.Open(d.path("masters.json")); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the data directory: %w; run as root, or choose another with --data-dir", err)
	} else if err != nil {
		return err
	}
	known, server := d.masters.Masters(), d.cfg.Server
	if server == "" && len(known) == 0 {
		return errors.New("role: a worker alone joins a master: the first time give its API with --server=https://HOST:6443, and a --token")
	}
	d.balancer = balancer.New(balancer.Config{Upstreams: known, Resort: addressIn(server), Log: d.log})
	return nil
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
	if d.cfg.Server == "" && d.masters != nil && len(d.masters.Masters()) > 0 {
		return "https://" + d.masters.Masters()[0]
	}
	return d.cfg.Server
}

// avoidMaster has a worker ask another master than the one that it asks now.
func (d *Daemon) avoidMaster() {
	if d.balancer != nil {
		d.balancer.Avoid()
	}
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
