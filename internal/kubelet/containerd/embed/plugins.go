package embed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	ctrd "github.com/containerd/containerd"
	"github.com/containerd/containerd/content"
	"github.com/containerd/containerd/content/local"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/events/exchange"
	"github.com/containerd/containerd/metadata"
	"github.com/containerd/containerd/mount"
	"github.com/containerd/containerd/plugin"
	"github.com/containerd/containerd/runtime"
	"github.com/containerd/containerd/sandbox"
	"github.com/containerd/containerd/snapshots"
	"github.com/containerd/log"
	toml "github.com/pelletier/go-toml"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/grpc"

	"minik8s/internal/disk"
	"minik8s/internal/kubelet/containerd/task"

	// The plugins this containerd consists of. Left out on purpose: its CRI, the monitors that
	// tick (restart, cgroup metrics), tracing, streaming, transfer, NRI, shims and sandboxes, and the other snapshotters.
	_ "github.com/containerd/containerd/diff/walking/plugin"
	_ "github.com/containerd/containerd/events/plugin"
	_ "github.com/containerd/containerd/gc/scheduler"
	_ "github.com/containerd/containerd/leases/plugin"
	_ "github.com/containerd/containerd/services/containers"
	_ "github.com/containerd/containerd/services/content"
	_ "github.com/containerd/containerd/services/diff"
	_ "github.com/containerd/containerd/services/events"
	_ "github.com/containerd/containerd/services/images"
	_ "github.com/containerd/containerd/services/introspection"
	_ "github.com/containerd/containerd/services/leases"
	_ "github.com/containerd/containerd/services/namespaces"
	_ "github.com/containerd/containerd/services/snapshots"
	_ "github.com/containerd/containerd/services/tasks"
	_ "github.com/containerd/containerd/services/version"
	_ "github.com/containerd/containerd/services/warning"
	_ "github.com/containerd/containerd/snapshots/native/plugin"
	_ "github.com/containerd/containerd/snapshots/overlay/plugin"
)

// server is containerd inside this process: its plugins, and its API on a unix socket. containerd's own
// services/server is not used because each start of it adds to a process-wide registry, so it cannot be started twice
// in a process, as tests of a restart do.
type server struct {
	client  *ctrd.Client
	grpc    *grpc.Server
	plugins []*plugin.Plugin
	db      *bolt.DB
	tasks   *task.Runtime
	cancel  context.CancelFunc
}

// pluginConfig has the settings that differ from containerd's defaults.
var pluginConfig = map[string]map[string]any{
	// Each deletion triggers a collection: otherwise removed snapshots stay on disk until something else is written.
	// The threshold only sets the interval at which an idle scheduler wakes, 5 ms / 0.0005 = 10 s; by default it
	// wakes ten times a second for nothing.
	"io.containerd.gc.v1.scheduler": {
		"deletion_threshold": int64(1), "mutation_threshold": int64(100),
		"schedule_delay": "200ms", "startup_delay": "2s", "pause_threshold": 0.0005,
	},
}

// startServer starts containerd with its data in root, what belongs to running containers in state and with the runtime,
// and its API at socket.
func startServer(root, state, socket string, tasks task.Config, logger *slog.Logger) (_ *server, err error) {
	bridgeStandard(logger)
	ctx, cancel := context.WithCancel(log.WithLogger(context.Background(), bridge(logger)))
	s := &server{grpc: grpc.NewServer(), cancel: cancel}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	for _, dir := range []string{root, state, filepath.Dir(socket)} {
		if err := disk.Private(dir, 0o700); err != nil {
			return nil, fmt.Errorf("containerd: %w", err)
		}
	}
	if err := sweepTempMounts(filepath.Join(root, "tmpmounts"), logger); err != nil {
		logger.Warn("mounts of an earlier run stay; the next start tries again", "err", err)
	}
	if err := s.load(ctx, root, state, socket, tasks); err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("containerd: %w", err)
	}
	go func() {
		if err := s.grpc.Serve(l); err != nil && !errors.Is(err, net.ErrClosed) && ctx.Err() == nil {
			logger.Error("containerd's socket", "path", socket, "err", err)
		}
	}()
	return s, nil
}

// sweepTempMounts makes containerd use dir for temporary mounts while it unpacks, instead of the system's directory
// for temporary files. It unmounts what a process left there that was killed while it unpacked.
func sweepTempMounts(dir string, logger *slog.Logger) error {
	if err := mount.SetTempMountLocation(dir); err != nil {
		return err
	}
	left, err := mount.CleanupTempMounts(0)
	for _, w := range left {
		logger.Warn("a mount of an earlier run stays", "err", w)
	}
	return err
}

// load starts the plugins in the order of their dependencies, and makes the client.
func (s *server) load(ctx context.Context, root, state, socket string, tasks task.Config) error {
	l := &loader{server: s, ctx: ctx, root: root, state: state, socket: socket, set: plugin.NewPluginSet(), events: exchange.NewExchange()}
	for _, r := range s.registrations(tasks) {
		if err := l.load(r); err != nil {
			return err
		}
	}
	var err error
	s.client, err = ctrd.New("", ctrd.WithDefaultNamespace(Namespace),
		ctrd.WithInMemoryServices(l.context(&plugin.Registration{Type: plugin.InternalPlugin, ID: "minik8s"})))
	if err != nil {
		return fmt.Errorf("containerd: client: %w", err)
	}
	return nil
}

// loader starts one plugin after the other.
type loader struct {
	*server
	ctx                 context.Context
	root, state, socket string
	set                 *plugin.Set
	events              *exchange.Exchange
}

// context is the InitContext of a plugin.
func (l *loader) context(r *plugin.Registration) *plugin.InitContext {
	ic := plugin.NewContext(l.ctx, r, l.set, l.root, l.state)
	ic.Events, ic.Address = l.events, l.socket
	ic.RegisterReadiness = func() func() { return func() {} }
	return ic
}

func (l *loader) load(r *plugin.Registration) error {
	if err := configure(r); err != nil {
		return fmt.Errorf("containerd: settings of %s: %w", r.URI(), err)
	}
	ic := l.context(r)
	ic.Config = r.Config
	p := r.Init(ic)
	if err := l.set.Add(p); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	instance, err := p.Instance()
	if plugin.IsSkipPlugin(err) || (err != nil && r.Type == plugin.SnapshotPlugin) {
		return nil // a snapshotter that is not supported on this file system; there is another
	}
	if err == nil {
		l.plugins = append(l.plugins, p)
		err = l.use(r, ic, instance)
	}
	if err != nil {
		return fmt.Errorf("containerd: plugin %s: %w", r.URI(), err)
	}
	return nil
}

// configure applies pluginConfig.
func configure(r *plugin.Registration) error {
	c, ok := pluginConfig[r.URI()]
	if !ok {
		return nil
	}
	tree, err := toml.TreeFromMap(c)
	if err != nil {
		return err
	}
	return tree.Unmarshal(r.Config)
}

// use registers a started plugin as containerd does, and keeps what we need of it.
func (l *loader) use(r *plugin.Registration, ic *plugin.InitContext, instance any) error {
	if c, ok := instance.(snapshots.Cleaner); ok && r.Type == plugin.SnapshotPlugin {
		cleanSnapshots(l.ctx, c, filepath.Join(ic.Root, "snapshots"))
	}
	if svc, ok := instance.(interface{ Register(*grpc.Server) error }); ok {
		return svc.Register(l.grpc)
	}
	return nil
}

// cleanSnapshots removes the directories of snapshots that were being made when the last run was killed, because
// their numbers are reused.
func cleanSnapshots(ctx context.Context, c snapshots.Cleaner, dir string) {
	err := c.Cleanup(ctx)
	if errdefs.IsNotFound(err) { // it has no snapshots yet, so all directories are of interrupted ones
		err = removeChildren(dir)
	}
	if err != nil {
		log.G(ctx).WithError(err).Error("what an earlier run left of snapshots stays; the next start tries again")
	}
}

// removeChildren empties a directory, if it is there.
func removeChildren(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

// registrations are the linked plugins, in order, with the garbage collector's wrapped, and some of our own: the content
// store, which containerd also registers by hand; the metadata, because containerd's plugin never closes its database; the
// runtime of tasks, in place of the manager of shims; and stand-ins for what we do not need but containerd insists on: the
// runtime of containerd 1.0 to 1.3, without which the service of tasks does not start, and sandboxes, without which its
// client does not.
func (s *server) registrations(tasks task.Config) []*plugin.Registration {
	list := []*plugin.Registration{{
		Type: plugin.ContentPlugin, ID: "content",
		InitFn: func(ic *plugin.InitContext) (any, error) { return local.NewStore(ic.Root) },
	}}
	rest := []*plugin.Registration{
		{Type: plugin.RuntimePluginV2, ID: "task", InitFn: func(ic *plugin.InitContext) (_ any, err error) {
			tasks.State, tasks.Events = ic.State, ic.Events
			s.tasks, err = task.New(tasks)
			return s.tasks, err
		}},
		{Type: plugin.RuntimePlugin, ID: "none", InitFn: func(*plugin.InitContext) (any, error) { return noTasks{s.tasks}, nil }},
		{Type: plugin.SandboxStorePlugin, ID: "none", InitFn: func(*plugin.InitContext) (any, error) { return noSandboxes{}, nil }},
		{Type: plugin.SandboxControllerPlugin, ID: "none", InitFn: func(*plugin.InitContext) (any, error) { return noSandboxControl{}, nil }},
	}
	for _, r := range plugin.Graph(func(*plugin.Registration) bool { return false }) {
		switch r.Type {
		case plugin.SnapshotPlugin:
			list = append(list, r)
			continue
		case plugin.RuntimePluginV2, plugin.SandboxStorePlugin, plugin.SandboxControllerPlugin:
			continue
		case plugin.GCPlugin:
			r = collecting(r)
		}
		rest = append(rest, r)
	}
	list = append(list, &plugin.Registration{Type: plugin.MetadataPlugin, ID: "bolt", InitFn: s.openMetadata})
	return append(list, rest...)
}

// noSandboxes and noSandboxControl are never called: nothing that serves them is linked.
type (
	noSandboxes      struct{ sandbox.Store }
	noSandboxControl struct{ sandbox.Controller }
)

// noTasks is a runtime under another name that has no tasks, so that they are not listed twice.
type noTasks struct{ runtime.PlatformRuntime }

// ID implements runtime.PlatformRuntime.
func (noTasks) ID() string { return "none" }

// Tasks implements runtime.PlatformRuntime.
func (noTasks) Tasks(context.Context, bool) ([]runtime.Task, error) { return nil, nil }

// openMetadata opens containerd's metadata database. Each commit is synced to disk, so that it is consistent even
// after a power failure. There are about six commits per pod, which costs time on a disk with slow syncs; in return
// images survive.
func (s *server) openMetadata(ic *plugin.InitContext) (any, error) {
	if err := os.MkdirAll(ic.Root, 0o711); err != nil {
		return nil, err
	}
	store, err := ic.Get(plugin.ContentPlugin)
	if err != nil {
		return nil, err
	}
	loaded, err := ic.GetByType(plugin.SnapshotPlugin)
	if err != nil {
		return nil, err
	}
	snapshotters := map[string]snapshots.Snapshotter{}
	for name, p := range loaded {
		if instance, err := p.Instance(); err == nil {
			snapshotters[name] = instance.(snapshots.Snapshotter)
		}
	}
	opts := *bolt.DefaultOptions
	opts.NoFreelistSync = true // less to write; the list is rebuilt from the file
	opts.Timeout = 10 * time.Second
	if s.db, err = bolt.Open(filepath.Join(ic.Root, "meta.db"), 0o600, &opts); err != nil {
		return nil, fmt.Errorf("is another daemon using this directory? %w", err)
	}
	db := metadata.NewDB(s.db, store.(content.Store), snapshotters, metadata.WithEventsPublisher(ic.Events))
	return db, db.Init(ic.Context)
}

// stop ends the API and closes the plugins, last first. Containers and their keepers go on.
func (s *server) stop() {
	s.cancel()
	s.grpc.Stop()
	for i := len(s.plugins) - 1; i >= 0; i-- {
		if instance, err := s.plugins[i].Instance(); err == nil {
			if c, ok := instance.(io.Closer); ok {
				c.Close()
			}
		}
	}
	if s.db != nil {
		s.db.Close()
	}
}
