package roles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/config"
	"minik8s/internal/api"
	apimembers "minik8s/internal/apiserver/members"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/membership"
	"minik8s/internal/registry"
	"minik8s/internal/snapshots"
	"minik8s/internal/store"
	"minik8s/internal/store/etcd"
	"minik8s/internal/supervise"
)

// embedded is the storage in the etcd inside this daemon, of which each master is a member.
type embedded struct {
	d     *Daemon
	store *etcd.Store
}

// check implements storage: to whoever knows its address and the CA, a new cluster with keys that other masters have would
// be theirs, with nothing in it.
func (m *embedded) check(context.Context) error {
	if where, err := place(m.d.cfg.DataDir); err != nil {
		return err
	} else if where.servers != "" {
		return fmt.Errorf("this machine's cluster is in the etcd at %s: give --etcd-servers, and --etcd-prefix if it is named there; or leave that cluster with \"minik8sd clean\"", where)
	}
	if m.d.joins() {
		return nil
	}
	if have, err := m.d.hasEtcd(); have || err != nil {
		return err
	}
	if shared, err := m.d.isShared(); !shared || err != nil {
		return err
	}
	return errors.New("this machine has the keys of a cluster of several masters, and none of its data: give --server=https://HOST:6443 of another " +
		"master; if there is none left, put a snapshot back with \"minik8sd ctl etcd restore\", or leave that cluster with \"minik8sd clean\"")
}

// hasEtcd reports whether there is data of the etcd inside.
func (d *Daemon) hasEtcd() (bool, error) {
	for _, path := range []string{d.path("etcd", "member"), d.path("etcd", "removed")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// open implements storage.
func (m *embedded) open(ctx context.Context) (openStore, error) {
	d := m.d
	s, err := etcd.Open(ctx, etcd.Config{Dir: d.path("etcd"), Name: d.cfg.NodeName, Quota: d.cfg.EtcdQuota,
		Cluster: d.ca.Pin(), Peers: d.peers(), Join: d.admission(), API: d.apiAddress(), Others: d.others(), ReplaceAfter: d.cfg.NodeRemovalPeriod,
		AwaitElection: !d.cfg.Does(config.EarlyElection), Log: d.log})
	if err != nil {
		return nil, err
	}
	m.store = s
	return s, nil
}

// parts implements storage: copies of the store are saved now and then.
func (m *embedded) parts() []supervise.Part {
	if m.d.cfg.SnapshotInterval == 0 {
		return nil
	}
	return []supervise.Part{{Name: "snapshots", Policy: supervise.Keep, After: []string{"etcd"}, Run: func(ctx context.Context, ready func()) error {
		ready()
		return snapshots.Run(ctx, snapshots.Config{Store: m.store, Dir: m.d.path("snapshots"), Every: m.d.cfg.SnapshotInterval,
			Keep: m.d.cfg.SnapshotKeep, Now: clock.Now, Log: m.d.log})
	}}}
}

// masters implements storage.
func (m *embedded) masters() ([]string, error) {
	var out []string
	for _, e := range m.store.Known() {
		out = append(out, e.Address)
	}
	return out, nil
}

// etcdAddress is where the other masters reach this one's etcd.
func (d *Daemon) etcdAddress() string {
	return net.JoinHostPort(d.cfg.NodeIP.String(), strconv.Itoa(d.cfg.EtcdPort))
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
	return membership.Request{Name: d.cfg.NodeName, Address: d.etcdAddress(), Key: d.creds.nodeKey}
}

// peers is how this master's etcd and those of others reach each other.
func (d *Daemon) peers() *etcd.Peers {
	return &etcd.Peers{Address: d.etcdAddress(), User: membership.User,
		CertFile: d.path("pki", "etcd.crt"), KeyFile: d.path("pki", "etcd.key"), CAFile: d.path("pki", "ca.crt")}
}

// Admit implements members.Store. Only the leader admits: unless it is this master, it is asked to. A name that a Node has
// belongs to the Node's machine.
func (m *embedded) Admit(ctx context.Context, r membership.Request, here bool) (addresses []string, err error) {
	if leader := m.leader(); leader != "" && !here {
		err = m.there(leader, func(c *membership.Client) (err error) {
			addresses, err = c.Admit(ctx, r, true)
			return err
		})
		return addresses, err
	}
	node, err := client.Get[*corev1.Node](ctx, m.d.as(registry.Part("membership")), client.Key{Kind: api.Nodes, Name: r.Name})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	case node.Annotations[api.MachineKeyAnnotation] != "" && node.Annotations[api.MachineKeyAnnotation] != r.Key:
		return nil, apiError(http.StatusConflict, metav1.StatusReasonConflict, api.OtherMachine(r.Name))
	}
	addresses, err = m.store.Admit(ctx, r.Name, r.Address)
	if err == nil {
		m.d.log.Info("a master joins", "name", r.Name, "etcd", r.Address)
	}
	return addresses, refusal(err)
}

// leader is where the API of the master that leads the store is, HOST:PORT; empty if that is this one, or is not known.
func (m *embedded) leader() string {
	for _, e := range m.store.Known() {
		if e.Leader && !e.Self {
			return e.API
		}
	}
	return ""
}

// there asks another master, by where its API is. The error is an API error.
func (m *embedded) there(address string, ask func(*membership.Client) error) error {
	c, err := m.d.others().client("https://" + address)
	if err != nil {
		return err
	}
	err = ask(c)
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

// Members implements members.Store. Only the leader knows who is lost: unless it is this master, it is asked. Without a
// majority the members are those that this master knew last.
func (m *embedded) Members(ctx context.Context, here bool) (membership.List, error) {
	revision, err := m.store.Revision(ctx)
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		return membership.List{}, refusal(err)
	}
	known := m.store.Known()
	leads, _ := m.store.Leads()
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
		case e.Joining:
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
func (m *embedded) Remove(ctx context.Context, which string, here bool) error {
	if leader := m.leader(); leader != "" && !here {
		return m.there(leader, func(c *membership.Client) error { return c.Remove(ctx, which, true) })
	}
	list, err := m.store.Members(ctx)
	if err != nil {
		return refusal(err)
	}
	var names []string
	for _, e := range list {
		if id := memberID(e.ID); which == id || which == e.Name {
			err := m.store.Remove(ctx, e.ID)
			if err == nil {
				m.d.log.Warn("a master was removed from the store", "name", e.Name, "id", id)
			}
			return refusal(err)
		}
		names = append(names, e.Name)
	}
	return apiError(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("no member of the store is named %q; there are: %s", which, strings.Join(names, ", ")))
}

func apiError(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}}
}

// Snapshot implements members.Store.
func (m *embedded) Snapshot(ctx context.Context) (apimembers.Snapshot, error) {
	s, err := m.store.Snapshot(ctx)
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
