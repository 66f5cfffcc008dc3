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
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apimembers "minik8s/internal/apiserver/members"
	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/disk"
	"minik8s/internal/membership"
	"minik8s/internal/store"
	"minik8s/internal/store/etcd"
)

// sharedName is the file in pki that says that other masters have the keys there, too.
const sharedName = "shared"

// caName is the name of a new cluster's CA.
const caName = "minik8s-ca"

const (
	minJoinPause = 100 * time.Millisecond
	maxJoinPause = 5 * time.Second
)

// joins reports whether this master is a further one of a cluster.
func (d *Daemon) joins() bool { return d.cfg.Server != "" }

func (d *Daemon) settings() membership.Settings {
	return membership.Settings{ClusterCIDR: d.cfg.ClusterCIDR, ClusterDomain: d.cfg.ClusterDomain}
}

// etcdAddress is where the other masters reach this one's etcd.
func (d *Daemon) etcdAddress() string {
	return net.JoinHostPort(d.cfg.NodeIP.String(), strconv.Itoa(d.cfg.EtcdPort))
}

// fetchKeys makes this machine one that signs for the cluster that it joins, unless it is already. It waits for a master
// for as long as it takes; an error is one that waiting does not cure.
func (d *Daemon) fetchKeys(ctx context.Context) error {
	dir := d.path("pki")
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
	return certs.Write(dir, "ca", certs.Pair{Cert: keys.CACert, Key: keys.CAKey})
}

// markShared notes that other masters have the keys, too.
func (d *Daemon) markShared() error {
	return disk.WriteFile(d.path("pki", sharedName), []byte("other masters have these keys, too\n"), 0o600)
}

// checkStore refuses to make a new cluster with keys that other masters have: to whoever knows its address and the CA, it
// would be theirs, with nothing in it.
func (d *Daemon) checkStore() error {
	if d.joins() {
		return nil
	}
	for _, path := range []string{d.path("etcd", "member"), d.path("etcd", "removed")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if _, err := os.Stat(d.path("pki", sharedName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return errors.New("this machine has the keys of a cluster of several masters, and none of its data: give --server=https://HOST:6443 of another " +
		"master; if there is none left, put a snapshot back with \"minik8sd ctl etcd restore\", or leave that cluster with \"minik8sd clean\"")
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

// admission returns the function by which this machine becomes a member of the store of the cluster that it joins; nil if
// it is the first.
func (d *Daemon) admission() func(context.Context) ([]string, error) {
	if !d.joins() {
		return nil
	}
	return func(ctx context.Context) ([]string, error) { return d.others().Admit(ctx, nil) }
}

// request is what this machine asks to be admitted with.
func (d *Daemon) request() membership.Request {
	return membership.Request{Name: d.cfg.NodeName, Address: d.etcdAddress()}
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

// peers is how this master's etcd and those of others reach each other.
func (d *Daemon) peers() *etcd.Peers {
	return &etcd.Peers{Address: d.etcdAddress(), User: membership.User,
		CertFile: d.path("pki", "etcd.crt"), KeyFile: d.path("pki", "etcd.key"), CAFile: d.path("pki", "ca.crt")}
}

// members implements the API server's members.Store.
type members struct{ d *Daemon }

// Keys are what this master signs with. From now on it is not the only one that does: should it lose its store, it must
// not make another with them.
func (m members) Keys() (membership.Keys, error) {
	if err := m.d.markShared(); err != nil {
		return membership.Keys{}, err
	}
	ca, err := certs.Read(m.d.path("pki"), "ca")
	if err != nil {
		return membership.Keys{}, err
	}
	sa, err := os.ReadFile(m.d.path("pki", "sa.key"))
	return membership.Keys{CACert: ca.Cert, CAKey: ca.Key, ServiceAccountKey: sa, Settings: m.d.settings()}, err
}

// Admit implements members.Store.
func (m members) Admit(ctx context.Context, r membership.Request) ([]string, error) {
	addresses, err := m.d.store.Admit(ctx, r.Name, r.Address)
	if err == nil {
		m.d.log.Info("a master joins", "name", r.Name, "etcd", r.Address)
	}
	return addresses, refusal(err)
}

// Members implements members.Store. Only the leader knows who is lost: unless it is this master, it is asked. Without a
// majority the members are those that this master knew last.
func (m members) Members(ctx context.Context, here bool) (membership.List, error) {
	revision, err := m.d.store.Revision(ctx)
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		return membership.List{}, refusal(err)
	}
	known := m.d.store.Known()
	leads, _ := m.d.store.Leads()
	if err == nil && !leads && !here {
		for _, e := range known {
			if !e.Leader || e.API == "" {
				continue
			}
			if list, err := m.d.others().ask(ctx, "https://"+e.API); err == nil {
				return list, nil
			}
		}
	}
	return listed(known, revision, leads && err == nil), nil
}

// listed are the members as the API lists them. leads says that the leader has listed them.
func listed(known []etcd.Member, revision int64, leads bool) membership.List {
	out := membership.List{Revision: revision, Members: []membership.Member{}}
	for _, e := range known {
		m := membership.Member{ID: memberID(e.ID), Name: e.Name, Address: e.Address, API: e.API, Role: membership.Voter, State: membership.Unknown}
		switch {
		case e.Learner:
			m.Role = membership.Learner
		case e.Leader && revision != 0:
			m.Role = membership.Leader
		}
		switch {
		case !leads && !e.Self:
		case e.Name == "":
			m.State = membership.Joining
		case e.Lost:
			m.State = membership.Lost
		default:
			m.State = membership.Up
		}
		out.Members = append(out.Members, m)
	}
	return out
}

func memberID(id uint64) string { return fmt.Sprintf("%x", id) }

// Remove implements members.Store. Only the leader knows whether those who stay are enough: unless it is this master, it
// is asked to.
func (m members) Remove(ctx context.Context, which string, here bool) error {
	list, err := m.d.store.Members(ctx)
	if err != nil {
		return refusal(err)
	}
	var names []string
	for _, e := range list {
		if e.Leader && !e.Self && !here && e.API != "" {
			return m.removeThere(ctx, which, "https://"+e.API)
		}
		names = append(names, e.Name)
	}
	for _, e := range list {
		if id := memberID(e.ID); which == id || which == e.Name {
			err := m.d.store.Remove(ctx, e.ID)
			if err == nil {
				m.d.log.Warn("a master was removed from the store", "name", e.Name, "id", id)
			}
			return refusal(err)
		}
	}
	return apiError(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("no member of the store is named %q; there are: %s", which, strings.Join(names, ", ")))
}

// removeThere has another master remove a member.
func (m members) removeThere(ctx context.Context, which, server string) error {
	c, err := m.d.others().client(server)
	if err != nil {
		return err
	}
	err = c.Remove(ctx, which, true)
	var refused *membership.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Code == http.StatusNotFound:
		return apiError(refused.Code, metav1.StatusReasonNotFound, refused.Message)
	case errors.As(err, &refused):
		return apiError(refused.Code, metav1.StatusReasonConflict, refused.Message)
	}
	return apierrors.NewServiceUnavailable("the master that leads did not answer: " + err.Error())
}

func apiError(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}}
}

// Snapshot implements members.Store.
func (m members) Snapshot(ctx context.Context) (apimembers.Snapshot, error) {
	s, err := m.d.store.Snapshot(ctx)
	if err != nil {
		return apimembers.Snapshot{}, refusal(err)
	}
	return apimembers.Snapshot{Revision: s.Revision, Size: s.Size, Content: s}, nil
}

// refusal turns an error about the store's members into an API error.
func refusal(err error) error {
	if errors.Is(err, etcd.ErrMember) {
		return apiError(http.StatusConflict, metav1.StatusReasonConflict, err.Error())
	}
	if errors.Is(err, store.ErrUnavailable) {
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return err
}
