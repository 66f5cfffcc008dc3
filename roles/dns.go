package roles

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/dns"
	"minik8s/internal/hostdns"
	"minik8s/internal/informer"
)

// What the network holds addresses for.
const (
	forDNS     = "d"
	forGateway = "g"
)

// runDNS answers the DNS questions of this machine's pods.
func (d *Daemon) runDNS(ctx context.Context, ready func()) error {
	at := make(chan netip.Addr, 1)
	answers := func(a netip.Addr) {
		select {
		case <-at: // nobody has seen it
		default:
		}
		at <- a
	}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { d.keepHostDNS(ctx, at) })
	opts := informer.Options{Views: d.nodeViews(), Log: d.log}
	s := dns.New(dns.Config{Domain: d.cfg.ClusterDomain, Hold: d.holdDNS, Held: d.heldDNS, Answers: answers, ResolvConf: d.cfg.ResolvConf, Asked: d.cfg.HostDNS, Log: d.log},
		informer.New[*corev1.Service](d.asNode(), api.Services, opts), informer.New[*discoveryv1.EndpointSlice](d.asNode(), api.EndpointSlices, opts),
		informer.New[*minik8s.DNS](d.asNode(), api.DNSes, opts))
	return s.Run(ctx, ready)
}

// heldDNS is the address of the DNS that an earlier run has left.
func (d *Daemon) heldDNS() netip.Addr {
	have, err := d.network.Served(forDNS)
	if err != nil || len(have) != 1 {
		return netip.Addr{}
	}
	return have[0]
}

// holdDNS has this machine have the address of the DNS; the zero Addr: none.
func (d *Daemon) holdDNS(at netip.Addr) error {
	var addrs []netip.Addr
	if at.IsValid() {
		addrs = append(addrs, at)
	}
	return d.network.Serve(forDNS, addrs)
}

// resolvConf is the file by which this machine's programs find their DNS servers.
func (d *Daemon) resolvConf() hostdns.File {
	return hostdns.File{Path: d.cfg.ResolvConf, Owner: d.network.Owner()}
}

// keepHostDNS has this machine ask the cluster's DNS first, wherever that is now, if it is to; else it undoes what an
// earlier run may have left.
func (d *Daemon) keepHostDNS(ctx context.Context, at <-chan netip.Addr) {
	if !d.cfg.HostDNS {
		if err := d.askNoMore(); err != nil {
			d.log.Error("this machine still asks the cluster's DNS", "file", d.cfg.ResolvConf, "error", err)
		}
		return
	}
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case now := <-at:
			end()
			end = d.askFirst(ctx, now)
		case <-ctx.Done():
			return
		}
	}
}

// askNoMore undoes, in either way, that this machine asks the cluster's DNS.
func (d *Daemon) askNoMore() error {
	return errors.Join(d.resolvConf().Restore(), d.network.DropResolver())
}

// keepAsking has this machine ask a server, too, until ctx ends, by systemd-resolved where its programs ask that.
func (d *Daemon) keepAsking(ctx context.Context, server netip.Addr) (err error) {
	resolved, err := d.resolvConf().Resolved(ctx)
	if errors.Is(err, hostdns.ErrNoResolved) {
		return d.resolvConf().Keep(ctx, server, d.log)
	}
	if err != nil {
		return err
	}
	defer resolved.Close()
	if err := d.resolvConf().Restore(); err != nil { // an earlier run may have found no resolved
		return err
	}
	link, err := d.network.Resolver()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.network.DropResolver()) }()
	return resolved.Keep(ctx, link, server, d.cfg.ClusterDomain)
}

// askAgain is after how long it is tried again when that could not be done.
const askAgain = 5 * time.Second

// askFirst has this machine ask a server, until end is called; the zero Addr: none.
func (d *Daemon) askFirst(ctx context.Context, server netip.Addr) (end func()) {
	if !server.IsValid() {
		if err := d.askNoMore(); err != nil {
			d.log.Error("this machine still asks a DNS that is gone", "file", d.cfg.ResolvConf, "error", err)
		}
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		for reported := ""; ; {
			err := d.keepAsking(ctx, server)
			if err == nil {
				return
			}
			if err.Error() != reported {
				d.log.Error("this machine does not ask the cluster's DNS, trying again", "error", err)
				reported = err.Error()
			}
			select {
			case <-time.After(askAgain):
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		stop()
		keeping.Wait()
	}
}
