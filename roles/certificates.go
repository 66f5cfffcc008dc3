package roles

import (
	"bytes"
	"context"
	"crypto/x509"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/apiserver/aggregator"
	"minik8s/internal/certs"
	"minik8s/internal/disk"
	"minik8s/internal/identity"
	"minik8s/internal/membership"
	"minik8s/internal/registry"
	"minik8s/internal/tokens"
)

// credentials are the certificates that the daemon serves with and is known by. Each is renewed while it is in use.
type credentials struct {
	trust    *x509.CertPool // the cluster's CA
	api      *certs.Kept    // the API server's; nil on a worker
	kubelets *certs.Kept    // the API server's as a client of kubelets; nil on a worker
	admin    *certs.Kept    // the administrator's, in the kubeconfig; nil on a worker
	front    *certs.Kept    // the front proxy's, for extension API servers; nil on a worker
	etcd     *certs.Kept    // etcd's, for other masters, which reads it from its file; nil on a worker
	kubelet  *certs.Kept    // the kubelet's server's; nil on a master alone
	node     *certs.Kept    // the kubelet's as a client of the API; on a master of those of others
	nodeKey  string         // a master's own machine, by the certs.KeyPin of its key
}

func (c *credentials) all() map[string]*certs.Kept {
	out := map[string]*certs.Kept{"apiserver": c.api, "apiserver-kubelet-client": c.kubelets, "admin": c.admin, "front-proxy": c.front, "etcd": c.etcd, "kubelet": c.kubelet, "node": c.node}
	for name, k := range out {
		if k == nil {
			delete(out, name)
		}
	}
	return out
}

// openAuthority makes or reads what a master signs with: the CA and the key of service accounts' tokens.
func (d *Daemon) openAuthority() (err error) {
	dir := d.path("pki")
	if d.ca, err = certs.OpenAuthority(dir, caName); err != nil {
		return err
	}
	d.ca.Lifetime = d.cfg.CertificateLifetime
	if err := d.ca.CheckTime(); err != nil {
		d.log.Error("nobody can connect to the API but through its socket", "error", err)
	}
	key, err := certs.OpenKey(dir, "sa")
	if err != nil {
		return err
	}
	d.tokens, err = tokens.New(key, "https://kubernetes.default.svc."+d.cfg.ClusterDomain)
	return err
}

// issue signs a master's own certificates: at once, because each waits for the disk.
func (d *Daemon) issue() error {
	dir := d.path("pki")
	d.creds.trust = d.ca.Pool()
	names := append(d.apiNames(), d.cfg.NodeName, d.cfg.NodeIP.String())
	var g errgroup.Group
	keep := func(to **certs.Kept, make func() (certs.Pair, error)) {
		g.Go(func() error {
			pair, err := make()
			if err == nil {
				*to, err = certs.Keep(pair, func(context.Context) (certs.Pair, error) { return make() })
			}
			return err
		})
	}
	keep(&d.creds.api, func() (certs.Pair, error) {
		pair, err := d.ca.Server(dir, "apiserver", names)
		// The CA goes along, for machines that join: they know it only by its pin.
		pair.Cert = bytes.Join([][]byte{pair.Cert, d.ca.Cert}, nil)
		return pair, err
	})
	keep(&d.creds.kubelets, func() (certs.Pair, error) {
		return d.ca.Client(dir, "apiserver-kubelet-client", "kube-apiserver-kubelet-client", registry.GroupMasters)
	})
	keep(&d.creds.admin, d.writeKubeconfig)
	g.Go(func() error {
		front := d.path("pki", frontProxyName)
		ca, err := certs.OpenAuthority(front, frontProxyName+"-ca")
		if err != nil {
			return err
		}
		ca.Lifetime, d.frontCA = d.cfg.CertificateLifetime, ca.Cert
		make := func() (certs.Pair, error) { return ca.Client(front, "client", aggregator.FrontProxyName) }
		pair, err := make()
		if err == nil {
			d.creds.front, err = certs.Keep(pair, func(context.Context) (certs.Pair, error) { return make() })
		}
		return err
	})
	keep(&d.creds.etcd, func() (certs.Pair, error) {
		return d.ca.Peer(dir, "etcd", membership.User, []string{d.cfg.NodeName, d.cfg.NodeIP.String()})
	})
	keep(&d.creds.kubelet, func() (certs.Pair, error) {
		return d.ca.Server(dir, "kubelet", []string{d.cfg.NodeName, d.cfg.NodeIP.String()})
	})
	g.Go(func() error {
		key, err := certs.OpenKey(dir, "node")
		if err != nil {
			return err
		}
		if d.creds.nodeKey, err = certs.PinOf(key); err != nil {
			return err
		}
		user := registry.MasterNode(d.cfg.NodeName, d.creds.nodeKey)
		make := func() (certs.Pair, error) {
			return d.ca.ClientWith(key, user.Name, registry.GroupNodes, api.GroupMasterNodes)
		}
		pair, err := make()
		if err == nil {
			d.creds.node, err = certs.Keep(pair, func(context.Context) (certs.Pair, error) { return make() })
		}
		return err
	})
	return g.Wait()
}

// apiNames are the names of the API that are no machine's.
func (d *Daemon) apiNames() []string {
	return []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + d.cfg.ClusterDomain,
		d.cfg.APIServiceAddress().String(), "localhost", "127.0.0.1", "::1"}
}

// foreignNames are those for which a worker gets no certificate: the API's, and the addresses of all masters, also of those
// whose Node is gone. The error says that they cannot be told now.
func (d *Daemon) foreignNames() ([]string, error) {
	masters, err := d.storage.masters()
	if err != nil {
		return nil, err
	}
	out := append(d.apiNames(), d.cfg.NodeIP.String())
	for _, m := range masters {
		if host, _, err := net.SplitHostPort(m); err == nil {
			out = append(out, host)
		}
	}
	return out, nil
}

// ownServer is the URL of a master's API for clients on this machine.
func (d *Daemon) ownServer() string {
	address := d.cfg.APIAddress
	if address == "" {
		address = loopback
	}
	return "https://" + net.JoinHostPort(address, strconv.Itoa(d.cfg.APIPort))
}

// writeKubeconfig writes the administrator's kubeconfig, and returns the certificate in it.
func (d *Daemon) writeKubeconfig() (certs.Pair, error) {
	admin, err := d.ca.Client(d.path("pki"), "admin", "kubernetes-admin", registry.GroupMasters)
	if err != nil {
		return admin, err
	}
	kc, err := certs.Kubeconfig("minik8s", d.ownServer(), d.ca.Cert, "admin", admin)
	if err != nil {
		return admin, err
	}
	return admin, disk.WriteFile(d.path(kubeconfigName), kc, 0o600)
}

// runCredentials is ready when this machine has what it signs with, or what it is known by: a master its cluster's keys,
// a worker its identity. A machine that has joined before is ready without a master.
func (d *Daemon) runCredentials(ctx context.Context, ready func()) error {
	own := d.joinAsWorker
	if d.cfg.Has(config.Master) {
		own = d.openMaster
	}
	if err := own(ctx); err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	return nil
}

// openMaster makes or reads a master's keys, which a further master gets from the others.
func (d *Daemon) openMaster(ctx context.Context) error {
	if d.joins() {
		if err := d.fetchKeys(ctx); err != nil {
			return err
		}
	}
	if err := d.storage.check(ctx); err != nil {
		return err
	}
	if err := d.openAuthority(); err != nil {
		return err
	}
	return d.issue()
}

func (d *Daemon) joinAsWorker(ctx context.Context) error {
	id, err := identity.Open(ctx, identity.Config{Server: d.cfg.Server, API: d.ownAPI(), Token: d.cfg.Token, Dir: d.path("pki"), Node: d.cfg.NodeName,
		Addresses: d.nodeAddresses(), Log: d.log})
	if err != nil {
		return err
	}
	d.identity = id
	d.creds = credentials{trust: id.CA(), kubelet: id.Serving(), node: id.Client()}
	return d.writeNodeKubeconfig()
}

// writeNodeKubeconfig writes a kubeconfig with the node's identity, for root on a worker.
func (d *Daemon) writeNodeKubeconfig() error {
	ca, cert, key := identity.Files(d.path("pki"))
	kc, err := certs.KubeconfigOfFiles("minik8s", d.ownAPI(), ca, "system:node:"+d.cfg.NodeName, cert, key)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(d.path(nodeKubeconfigName)); err == nil && bytes.Equal(have, kc) {
		return nil
	}
	return disk.WriteFile(d.path(nodeKubeconfigName), kc, 0o600)
}

const (
	minRenewRetry = time.Second
	maxRenewRetry = 5 * time.Minute
)

// runCertificates renews certificates before they expire, until ctx ends.
func (d *Daemon) runCertificates(ctx context.Context, ready func()) error {
	ready()
	var wg sync.WaitGroup
	for name, k := range d.creds.all() {
		wg.Go(func() { d.keep(ctx, name, k) })
	}
	wg.Wait()
	return nil
}

func (d *Daemon) keep(ctx context.Context, name string, k *certs.Kept) {
	for retry := minRenewRetry; ctx.Err() == nil; {
		wait, err := k.Renew(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			d.log.Warn("a certificate could not be renewed, trying again", "certificate", name, "error", err, "in", retry)
			wait, retry = retry, min(2*retry, maxRenewRetry)
		case err == nil:
			retry = minRenewRetry
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}
