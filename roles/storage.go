package roles

import (
	"context"
	"errors"
	"io/fs"
	"os"

	apimembers "minik8s/internal/apiserver/members"
	"minik8s/internal/controller/leader"
	"minik8s/internal/membership"
	"minik8s/internal/store"
	"minik8s/internal/store/external"
	"minik8s/internal/supervise"
)

// storage is where a master keeps the cluster's objects: in the etcd inside this daemon, or in one that others run. The
// parts use what it has opened, d.store, whichever of the two that is.
type storage interface {
	// check refuses, before keys are made or used, a start that would make a cluster where there is one, or with the keys
	// of one that is elsewhere.
	check(ctx context.Context) error
	// open returns when the cluster can be read and written. It waits for what is away for as long as it takes.
	open(ctx context.Context) (openStore, error)
	// parts are those that only this storage has.
	parts() []supervise.Part
	// masters are the addresses, HOST:PORT, of all masters, those too that are away.
	masters() ([]string, error)

	// What the API server asks about the storage's members; see package apiserver/members.
	Admit(ctx context.Context, r membership.Request, here bool) ([]string, error)
	Members(ctx context.Context, here bool) (membership.List, error)
	Remove(ctx context.Context, member string, here bool) error
	Snapshot(ctx context.Context) (apimembers.Snapshot, error)
}

// openStore is what a storage has opened.
type openStore interface {
	store.Store
	leader.Raft
	// Err delivers the error after which the store is of no use, if there is one.
	Err() <-chan error
}

// newStorage is the one that is configured. The error is about files that cannot be used.
func (d *Daemon) newStorage() (storage, error) {
	if len(d.cfg.EtcdServers) == 0 {
		return &embedded{d: d}, nil
	}
	e := &outside{d: d}
	return e, e.config().Check()
}

// isShared reports whether other masters have the keys, too.
func (d *Daemon) isShared() (bool, error) {
	_, err := os.Stat(d.path("pki", sharedName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

var (
	_ openStore = (*external.Store)(nil)
	_ storage   = (*embedded)(nil)
	_ storage   = (*outside)(nil)
)
