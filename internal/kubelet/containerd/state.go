package containerd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"minik8s/internal/disk"
	"minik8s/internal/kubelet/containerd/stdio"
	"minik8s/internal/kubelet/cri"
)

const (
	// metaType is the extension of containerd's container that holds ours.
	metaType = "minik8s.io/container.v1"
)

// meta is what does not change about a container. containerd stores it with its container.
type meta struct {
	ID, PodUID, PodNamespace, PodName, Name string
	Attempt                                 int
	SandboxID                               string `json:"Slot"` // stored by earlier versions too
	Image, ImageID                          string
	LogPath                                 string
	StopSignal                              string
	Cgroup                                  string
	TTY                                     bool
	StdinOnce                               bool // its stdin is closed with the first attached client's
	OwnPIDs                                 bool // it has a process namespace of its own: all end with the first process
	CreatedAt                               time.Time
	Labels                                  map[string]string
}

// state is the container's state. It is written to the container's directory on each change: the shim also knows the
// exit, but only while it runs.
type state struct {
	State                 cri.ContainerState
	StartedAt, FinishedAt time.Time
	ExitCode              int32
	OOMKilled             bool
	// Lost: it ended with the machine; how it ended is not known.
	Lost bool
	// StartError says that it never ran, and why.
	StartError string
	// Discarded: it never ran and is being removed; the end of its process is not reported.
	Discarded bool
}

// container is a container of this runtime.
type container struct {
	meta   meta
	dir    string
	output *stdio.Output // nil: none
	// joins is another container's process namespace, open while this one is made.
	joins *os.File

	mu     sync.Mutex
	state  state
	pid    uint32
	exited chan struct{} // closed when the state is Exited, or the process of a discarded one has ended
}

func newContainer(m meta, dir string) *container {
	return &container{meta: m, dir: dir, exited: make(chan struct{})}
}

func (c *container) get() (state, uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.pid
}

// advance changes the container to a later state; an earlier or the same one changes nothing. It reports whether the
// state changed.
func (c *container) advance(to cri.ContainerState, change func(*state)) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to <= c.state.State {
		return false, nil
	}
	next := c.state
	change(&next)
	next.State = to
	err := c.save(next)
	c.state = next
	if to == cri.Exited {
		close(c.exited)
	}
	return true, err
}

// discard marks a container that never ran, before its process is killed.
func (c *container) discard() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Discarded = true
	return c.save(c.state)
}

// exitedDiscarded records the exit of a discarded container; it returns false for other containers.
func (c *container) exitedDiscarded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.Discarded {
		return false
	}
	select {
	case <-c.exited:
	default:
		close(c.exited)
	}
	return true
}

func (c *container) save(s state) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	err = disk.Publish(filepath.Join(c.dir, "state.json"), data, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		// After a reboot.
		if err = os.MkdirAll(c.dir, 0o711); err == nil {
			err = disk.Publish(filepath.Join(c.dir, "state.json"), data, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	return nil
}

// report converts the container for the kubelet.
func (c *container) report() cri.Container {
	s, pid := c.get()
	out := cri.Container{
		ID: c.meta.ID, PodUID: c.meta.PodUID, SandboxID: c.meta.SandboxID, Name: c.meta.Name, Attempt: c.meta.Attempt, State: s.State,
		CreatedAt: c.meta.CreatedAt, StartedAt: s.StartedAt, FinishedAt: s.FinishedAt,
		ExitCode: s.ExitCode, Lost: s.Lost, OOMKilled: s.OOMKilled, Image: c.meta.Image, ImageID: c.meta.ImageID,
		LogPath: c.meta.LogPath, Labels: maps.Clone(c.meta.Labels),
	}
	if s.State == cri.Running {
		out.Pid = pid
	}
	if s.State == cri.Exited {
		out.StartError = s.StartError
	}
	if s.State == cri.Exited && s.StartError == "" && s.ExitCode > 128 && s.ExitCode <= 128+64 {
		out.Signal = int(s.ExitCode) - 128
	}
	return out
}
