package containerd

import (
	"errors"
	"fmt"
	"log/slog"
	"minik8s/internal/kubelet/containerd/image"
	"path/filepath"

	"minik8s/internal/kubelet/work"
)

// Config configures a Runtime.
type Config struct {
	// DataDir is the daemon's data directory. The runtime owns bin, containerd, run and images in it.
	DataDir string
	// RunDir holds namespaces, pipes, records and runc's state. Empty: DataDir/run.
	RunDir string
	// Socket of a containerd that is already running. Empty: one is started in this process.
	Socket string
	// NodeName is the host name of pods on the host's network that ask for none.
	NodeName string
	// Network connects sandboxes. The caller owns it: it calls Setup once New has returned, then NetworkChanged of
	// the runtime, and closes the network after the runtime.
	Network Network
	// CgroupRoot is the parent of pods that name none. Empty: /minik8s.
	CgroupRoot string
	// LogMaxSize is the size in bytes at which a container's log is rotated (10 MiB if 0), and
	// LogMaxFiles how many are kept, the current one included (5 if 0).
	LogMaxSize  int64
	LogMaxFiles int
	// InsecureRegistries are host[:port] of registries to use by plain HTTP; those on loopback always are.
	InsecureRegistries []string
	// Registries are reached in ways of their own, by the host in the names of their images.
	Registries map[string]image.Way
	// Warm is how many sandboxes (namespaces with an address) are made in advance for the next pods. Negative: none; 0: one.
	Warm int
	// Work bounds work that takes CPU time; it is the kubelet's, too. Nil: one of its own.
	Work *work.Limit
	// Log is the logger. Nil: slog.Default().
	Log *slog.Logger
}

// complete sets the defaults of empty fields and returns an error for invalid ones.
func (c *Config) complete() error {
	if c.DataDir == "" {
		return errors.New("containerd: no data directory given")
	}
	if c.Network == nil {
		return errors.New("containerd: no network given")
	}
	var err error
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return fmt.Errorf("containerd: data directory: %w", err)
	}
	if c.RunDir == "" {
		c.RunDir = filepath.Join(c.DataDir, "run")
	}
	if c.CgroupRoot == "" {
		c.CgroupRoot = "/minik8s"
	}
	if c.LogMaxSize == 0 {
		c.LogMaxSize = 10 << 20
	}
	if c.LogMaxFiles == 0 {
		c.LogMaxFiles = 5
	}
	switch {
	case c.Warm == 0:
		c.Warm = 1
	case c.Warm < 0:
		c.Warm = 0
	}
	if c.Work == nil {
		c.Work = work.New(work.Turns())
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}
