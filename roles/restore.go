package roles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"minik8s/config"
	"minik8s/internal/datadir"
	"minik8s/internal/store/etcd/recovery"
)

// Restored is what Restore and Recover have made.
type Restored = recovery.Restored

// Restore puts a snapshot in the place of the store in the data directory of a stopped daemon, or of one that never ran;
// with force also where there is one.
func Restore(ctx context.Context, dataDir, file string, force bool, log *slog.Logger) (Restored, error) {
	d := &Daemon{cfg: &config.Config{DataDir: dataDir}, log: log}
	defer d.Close()
	if err := d.claim(); err != nil {
		return Restored{}, err
	}
	if err := d.dir.Mark(""); err != nil {
		return Restored{}, err
	}
	if err := d.refuseOutside(); err != nil {
		return Restored{}, err
	}
	r, err := recovery.Restore(d.path("etcd"), file, force, log)
	if errors.Is(err, recovery.ErrPresent) {
		err = fmt.Errorf("%w in %s: nothing was changed; with --force it is replaced, and kept beside", err, d.path("etcd"))
	}
	return r, err
}

// Recover makes what the master has that ran in a data directory the whole cluster, without the other masters.
func Recover(ctx context.Context, dataDir string, log *slog.Logger) (Restored, error) {
	if _, err := datadir.Look(dataDir); errors.Is(err, fs.ErrNotExist) {
		return Restored{}, fmt.Errorf("there is no data directory at %s: name it with --data-dir", dataDir)
	} else if err != nil {
		return Restored{}, err
	}
	d := &Daemon{cfg: &config.Config{DataDir: dataDir}, log: log}
	defer d.Close()
	if err := d.claim(); err != nil {
		return Restored{}, err
	}
	if err := d.refuseOutside(); err != nil {
		return Restored{}, err
	}
	return recovery.Recover(ctx, d.path("etcd"), log)
}

// refuseOutside refuses to make a store in the place of one that others keep.
func (d *Daemon) refuseOutside() error {
	where, err := place(d.cfg.DataDir)
	if err != nil || where.servers == "" {
		return err
	}
	return fmt.Errorf("this machine's cluster is in the etcd at %s: put a snapshot back there, with \"etcdutl snapshot restore --bump-revision 1000000000 --mark-compacted\" on each of its members, "+
		"while the masters are stopped; nothing was changed", where)
}
