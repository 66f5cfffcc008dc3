package roles

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/disk"
	"minik8s/internal/membership"
)

// sharedName is the file in pki that says that other masters have the keys there, too.
const sharedName = "shared"

// frontProxyName is the directory in pki with the front proxy's CA and certificate. The CA is not the cluster's: who has a
// certificate of the cluster must not be able to speak for others to an extension API server.
const frontProxyName = "front-proxy"

// caName is the name of a new cluster's CA.
const caName = "minik8s-ca"

const (
	minJoinPause = 100 * time.Millisecond
	maxJoinPause = 5 * time.Second
)

// joins reports whether this master is a further one of a cluster.
func (d *Daemon) joins() bool { return d.cfg.Server != "" }

func (d *Daemon) settings() membership.Settings {
	out := membership.Settings{ClusterCIDR: d.cfg.ClusterCIDR, ClusterDomain: d.cfg.ClusterDomain, Shared: d.cfg.Shared()}
	if len(d.cfg.EtcdServers) > 0 {
		out.EtcdPrefix = d.cfg.EtcdPrefix
	}
	return out
}

// fetchKeys makes this machine one that signs for the cluster that it joins, unless it is already. It waits for a master
// for as long as it takes; an error is one that waiting does not cure.
func (d *Daemon) fetchKeys(ctx context.Context) error {
	_, cerr := os.Stat(d.path("pki", "ca.crt"))
	_, err := os.Stat(d.path("pki", "ca.key")) // a worker has the certificate alone
	if err = errors.Join(cerr, err); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, d.checkToken())
	}
	t, err := bootstrap.Parse(d.cfg.Token)
	switch {
	case d.cfg.Token == "":
		return errors.New("this machine is no master of a cluster yet: --token is needed; \"minik8sd ctl token create --role=master\" on a master prints one")
	case err != nil:
		return fmt.Errorf("--token: %w", err)
	case t.Pin == "":
		return errors.New("--token: it lacks the pin of the cluster's CA, its third part; \"minik8sd ctl token create --role=master\" prints one with it")
	}
	server, err := url.Parse(d.cfg.Server)
	if err != nil {
		return err
	}
	var keys membership.Keys
	err = d.untilFinal(ctx, "the cluster's keys", func() error {
		ca, err := bootstrap.FetchCA(ctx, server.Host, t.Pin)
		if errors.Is(err, bootstrap.ErrOtherCluster) || errors.As(err, new(x509.HostnameError)) {
			return final{err}
		}
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		keys, err = (&membership.Client{Server: d.cfg.Server, CA: pool, Token: t.Bearer()}).Keys(ctx)
		return err
	})
	var refused *membership.Refusal
	if errors.As(err, &refused) && refused.Code == http.StatusForbidden {
		return fmt.Errorf("%w: the token is for workers: give --role=worker, or a token that \"minik8sd ctl token create --role=master\" prints", err)
	}
	if err == nil {
		err = keys.Settings.Differ(d.settings())
	}
	if err != nil {
		return err
	}
	return d.storeKeys(keys)
}

// storeKeys makes this machine one that signs with these keys.
func (d *Daemon) storeKeys(keys membership.Keys) error {
	dir := d.path("pki")
	// The CA's certificate is written last: where it is, everything is.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := d.markShared(); err != nil {
		return err
	}
	if err := disk.WriteFile(d.path("pki", "sa.key"), keys.ServiceAccountKey, 0o600); err != nil {
		return err
	}
	if keys.FrontProxyCAKey != nil {
		if err := certs.Write(d.path("pki", frontProxyName), "ca", certs.Pair{Cert: keys.FrontProxyCACert, Key: keys.FrontProxyCAKey}); err != nil {
			return err
		}
	}
	return certs.Write(dir, "ca", certs.Pair{Cert: keys.CACert, Key: keys.CAKey})
}

// markShared notes that other masters have the keys, too.
func (d *Daemon) markShared() error {
	return disk.WriteFile(d.path("pki", sharedName), []byte("other masters have these keys, too\n"), 0o600)
}

// checkToken refuses a token of another cluster than the one whose keys this machine has.
func (d *Daemon) checkToken() error {
	t, err := bootstrap.Parse(d.cfg.Token)
	if err != nil || t.Pin == "" {
		return nil //nolint:nilerr // it is not needed any more
	}
	ca, err := certs.OpenAuthority(d.path("pki"), caName)
	if err != nil || ca.Pin() == t.Pin {
		return err
	}
	return fmt.Errorf("--token is of another cluster than the one whose keys are in %s: remove --token, or leave that cluster with \"minik8sd clean\"", d.path("pki"))
}

// apiAddress is where the other machines reach this one's API.
func (d *Daemon) apiAddress() string {
	return net.JoinHostPort(d.cfg.NodeIP.String(), strconv.Itoa(d.cfg.APIPort))
}

// final is an error that trying again does not cure.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// untilFinal calls f until it succeeds, fails for good, or ctx ends.
func (d *Daemon) untilFinal(ctx context.Context, missing string, f func() error) error {
	for pause := minJoinPause; ; pause = min(2*pause, maxJoinPause) {
		err := f()
		switch {
		case err == nil:
			return nil
		case errors.As(err, new(final)), errors.As(err, new(*membership.Refusal)):
			return fmt.Errorf("joining the cluster at %s as a master: %w", d.cfg.Server, err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		d.log.Warn("the cluster cannot be joined yet, trying again", "missing", missing, "error", err, "in", pause)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// members implements the API server's members.Store: what the storage says about its members, and the keys.
type members struct {
	storage
	d *Daemon
}

// Keys are what this master signs with, and the settings that the cluster has.
func (m members) Keys() (membership.Keys, error) {
	keys, err := m.d.keys()
	if err == nil {
		keys.Settings = m.d.settings()
		keys.Settings.Shared, err = m.Settings(context.Background())
	}
	return keys, err
}

// keys are what this master signs with. From now on it is not the only one that does: should it lose its store, it must
// not make another with them.
func (d *Daemon) keys() (membership.Keys, error) {
	if err := d.markShared(); err != nil {
		return membership.Keys{}, err
	}
	ca, err := certs.Read(d.path("pki"), "ca")
	if err != nil {
		return membership.Keys{}, err
	}
	front, err := certs.Read(d.path("pki", frontProxyName), "ca")
	if err != nil {
		return membership.Keys{}, err
	}
	sa, err := os.ReadFile(d.path("pki", "sa.key"))
	return membership.Keys{CACert: ca.Cert, CAKey: ca.Key, ServiceAccountKey: sa, FrontProxyCACert: front.Cert, FrontProxyCAKey: front.Key}, err
}
