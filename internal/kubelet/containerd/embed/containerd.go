package embed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	ctrd "github.com/containerd/containerd"
	"github.com/containerd/containerd/namespaces"
	"github.com/containerd/containerd/snapshots/overlay/overlayutils"
	"github.com/containerd/log"
	"github.com/sirupsen/logrus"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/containerd/bin"
	"minik8s/internal/kubelet/containerd/task"
)

const (
	// Namespace is containerd's namespace for everything of minik8s.
	Namespace = "minik8s"
	// SpecType is the type of an OCI specification in containerd's metadata.
	SpecType = "types.containerd.io/opencontainers/runtime-spec/1/Spec"
	// RuntimeName is the runtime of our containers, as containerd has it written down: an external containerd starts its shim
	// by it.
	RuntimeName = "io.containerd.runc.v2"
	// GCRoot is the label that protects an object from containerd's garbage collector.
	GCRoot = "containerd.io/gc.root"
)

// maxSocketPath is the longest path that fits into a sockaddr_un, less the final zero.
const maxSocketPath = 107

// Config configures containerd.
type Config struct {
	// DataDir is the daemon's data directory; containerd has bin and containerd in it.
	DataDir string
	// RunDir holds the state of running containers, which is not needed after a reboot.
	RunDir string
	// Cgroups is where keepers are put.
	Cgroups *cgroup.Manager
	// Log receives containerd's warnings and errors.
	Log *slog.Logger
}

// Containerd is a containerd: the one in this process, or an external one. Its fields do not change.
type Containerd struct {
	Client   *ctrd.Client
	Programs bin.Programs
	// Snapshotter makes the root file systems: overlayfs, or native where the kernel or disk lacks it.
	Snapshotter string
	// Root is where it keeps images and metadata; empty if it is external.
	Root string
	// Socket is where its API is served.
	Socket string

	server *server      // nil if it is external
	settle func() error // see bin.Unpack; may be nil
	logger *logrus.Entry
}

// Start unpacks the programs and starts containerd in this process.
func Start(ctx context.Context, cfg Config) (*Containerd, error) {
	c := &Containerd{
		Root: filepath.Join(cfg.DataDir, "containerd"), Socket: socketPath(cfg), Snapshotter: "overlayfs",
		logger: bridge(cfg.Log),
	}
	var err error
	if c.Programs, c.settle, err = bin.Unpack(filepath.Join(cfg.DataDir, "bin")); err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	tasks := task.Config{RuncRoot: filepath.Join(cfg.RunDir, "runc"), Runc: c.Programs.Runc, Keeper: c.Programs.Keeper, Cgroups: cfg.Cgroups, Log: cfg.Log}
	if c.server, err = startServer(c.Root, filepath.Join(cfg.RunDir, "containerd"), c.Socket, tasks, cfg.Log); err != nil {
		return nil, err
	}
	c.Client = c.server.client
	if err := overlayutils.Supported(c.Root); err != nil {
		c.Snapshotter = "native"
		cfg.Log.Warn("no overlay file system here: images are copied for each container, which is slow", "err", err)
	}
	return c, nil
}

// Connect uses a containerd that is already running, with the shim and runc that it finds itself.
func Connect(ctx context.Context, socket string, cfg Config) (*Containerd, error) {
	c := &Containerd{
		Snapshotter: "overlayfs", logger: bridge(cfg.Log),
	}
	var err error
	c.Client, err = ctrd.New(socket, ctrd.WithDefaultNamespace(Namespace), ctrd.WithTimeout(10*time.Second))
	if err == nil {
		_, err = c.Client.Version(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("containerd at %s: %w", socket, err)
	}
	return c, nil
}

// Embedded reports whether it runs in this process, and so its files are ours.
func (c *Containerd) Embedded() bool { return c.server != nil }

// Context adds our namespace in containerd, and our logger, to a context. Every call of the client needs it.
func (c *Containerd) Context(ctx context.Context) context.Context {
	return namespaces.WithNamespace(log.WithLogger(ctx, c.logger), Namespace)
}

// EndTasks ends and removes every task of the containerd in this process, also those that others have made.
func (c *Containerd) EndTasks(ctx context.Context) error {
	if c.server == nil {
		return nil
	}
	return c.server.tasks.EndAll(ctx)
}

// SettlePrograms calls settle of bin.Unpack, which a start does not wait for.
func (c *Containerd) SettlePrograms() error {
	if c.settle == nil {
		return nil
	}
	return c.settle()
}

// Stop ends containerd, or the connection to it. Containers continue.
func (c *Containerd) Stop() error {
	if c.server != nil {
		c.server.stop()
		return nil
	}
	return c.Client.Close()
}

// socketPath is where containerd's socket is served: beside its data if the path is short enough for
// a unix socket, else in a directory of /run that is named after the data directory.
func socketPath(cfg Config) string {
	for _, p := range []string{filepath.Join(cfg.DataDir, "containerd", "containerd.sock"), filepath.Join(cfg.RunDir, "containerd.sock")} {
		if len(p) <= maxSocketPath {
			return p
		}
	}
	sum := sha256.Sum256([]byte(cfg.DataDir))
	return filepath.Join("/run", fmt.Sprintf("minik8s-%x", sum[:6]), "containerd.sock")
}
