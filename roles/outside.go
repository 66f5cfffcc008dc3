package roles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apimembers "minik8s/internal/apiserver/members"
	"minik8s/internal/disk"
	"minik8s/internal/membership"
	"minik8s/internal/store/external"
	"minik8s/internal/supervise"
)

// outside is the storage in an etcd that others run. No master is a member of it, and all that have the cluster's keys use
// it alike.
type outside struct {
	d     *Daemon
	store *external.Store
}

// outsideName is the file beside the data of the etcd inside that says that the cluster is in another one, and where.
const outsideName = "outside"

// outsidePlace is where the cluster is that this machine has in an etcd that others run; without servers it has none there.
type outsidePlace struct {
	servers, prefix string
	// made is false while the cluster is being made: it may be there already, or not.
	made bool
}

func (p outsidePlace) String() string { return p.servers + ", prefix " + p.prefix }

// notMade is the second line of the file while the cluster is being made.
const notMade = "not made yet"

// place reads where the cluster of a data directory is.
func place(dataDir string) (outsidePlace, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "etcd", outsideName))
	if errors.Is(err, fs.ErrNotExist) {
		return outsidePlace{}, nil
	}
	where, rest, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	p := outsidePlace{made: rest != notMade}
	p.servers, p.prefix, _ = strings.Cut(where, ", prefix ")
	return p, err
}

// note writes where the cluster is, unless that is what was read.
func (d *Daemon) note(before, now outsidePlace) error {
	if now == before {
		return nil
	}
	text := now.String() + "\n"
	if !now.made {
		text += notMade + "\n"
	}
	if err := os.MkdirAll(d.path("etcd"), 0o700); err != nil {
		return err
	}
	return disk.WriteFile(d.path("etcd", outsideName), []byte(text), 0o600)
}

func (o *outside) config() external.Config {
	c := o.d.cfg
	return external.Config{Servers: c.EtcdServers, Prefix: c.EtcdPrefix, CAFile: c.EtcdCAFile, CertFile: c.EtcdCertFile, KeyFile: c.EtcdKeyFile,
		CompactEvery: c.EtcdCompactionInterval, Name: c.NodeName, Log: o.d.log}
}

// check implements storage. A machine without keys makes a new cluster, so there must be none.
func (o *outside) check(ctx context.Context) error {
	if have, err := o.d.hasEtcd(); err != nil {
		return err
	} else if have {
		return fmt.Errorf("this machine has a cluster in the etcd inside the daemon (%s), which is not moved to another one: remove --etcd-servers, "+
			"or leave that cluster with \"minik8sd clean\"", o.d.path("etcd"))
	}
	if _, err := os.Stat(o.d.path("pki", "ca.crt")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return external.Vacant(ctx, o.config())
}

// open implements storage. A cluster is made there only by the first master, and only once.
func (o *outside) open(ctx context.Context) (openStore, error) {
	d, cfg := o.d, o.config()
	before, err := place(d.cfg.DataDir)
	if err != nil {
		return nil, err
	}
	shared, err := d.isShared()
	if err != nil {
		return nil, err
	}
	cfg.Cluster, cfg.New = d.ca.Pin(), !before.made && !shared && !d.joins()
	cfg.API, cfg.Identity = d.apiAddress(), d.creds.nodeKey
	here := outsidePlace{servers: strings.Join(cfg.Servers, ","), prefix: cfg.Prefix}
	if cfg.New { // a start after this one was killed must know that there may be a cluster
		if err := d.note(before, here); err != nil {
			return nil, err
		}
		before = here
	}
	s, err := external.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	o.store, here.made = s, true
	if err := d.note(before, here); err != nil {
		s.Close() //nolint:errcheck // the first error counts
		return nil, err
	}
	return s, nil
}

// parts implements storage.
func (o *outside) parts() []supervise.Part { return nil }

// mastersLimit is how long etcd may take to say who the masters are.
const mastersLimit = 2 * time.Second

// masters implements storage.
func (o *outside) masters() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), mastersLimit)
	defer cancel()
	return o.store.Masters(ctx)
}

// elsewhere is the answer to a request that is for the operator of etcd.
func (o *outside) elsewhere(instead string) error {
	return apiError(http.StatusConflict, metav1.StatusReasonConflict,
		fmt.Sprintf("the masters keep the cluster in the etcd at %s, which others run: %s", strings.Join(o.d.cfg.EtcdServers, ","), instead))
}

// Admit implements storage.
func (o *outside) Admit(context.Context, membership.Request, bool) ([]string, error) {
	return nil, o.elsewhere("a further master becomes no member of it: give it --etcd-servers, as the other masters have it")
}

// Members implements storage.
func (o *outside) Members(context.Context, bool) (membership.List, error) {
	return membership.List{}, o.elsewhere("\"etcdctl member list\" lists its members; the masters are the nodes with the role control-plane, and the Lease minik8s-master in kube-system says who leads")
}

// Remove implements storage.
func (o *outside) Remove(_ context.Context, member string, _ bool) error {
	return o.elsewhere(fmt.Sprintf("\"etcdctl member remove\" removes one of its members; for a master that is gone for good nothing has to be done, but that its address is refused to "+
		"workers until \"etcdctl del %s%s\"", o.store.MastersKey(), member))
}

// Snapshot implements storage.
func (o *outside) Snapshot(ctx context.Context) (apimembers.Snapshot, error) {
	s, err := o.store.Snapshot(ctx)
	if err != nil {
		return apimembers.Snapshot{}, refusal(err)
	}
	return apimembers.Snapshot{Revision: s.Revision, Size: s.Size, Content: s}, nil
}
