package container

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

// metaType is the extension of containerd's container that holds ours.
const metaType = "minik8s.io/container.v1"

// Meta is what does not change about a container. containerd stores it with its container.
type Meta struct {
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

// state is the container's state. It is written to the container's directory on each change.
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

// Container is a container of this runtime. Its methods are safe for concurrent use. Every ctx is from
// Containerd.Context.
type Container struct {
	// Meta is not changed.
	Meta Meta

	set    *Set
	dir    string
	output *stdio.Output // nil: none

	mu     sync.Mutex
	state  state
	pid    uint32
	exited chan struct{} // closed when the state is Exited, or the process of a discarded one has ended
}

func (s *Set) container(m Meta) *Container {
	return &Container{Meta: m, set: s, dir: s.dir(m.ID), exited: make(chan struct{})}
}

// Exited is closed when the container has ended. It is also closed when the process of one that never ran, and is being
// removed, has ended.
func (c *Container) Exited() <-chan struct{} { return c.exited }

// Running reports whether its process runs.
func (c *Container) Running() bool {
	s, _ := c.get()
	return s.State == cri.Running
}

// StartError says why the container cannot run or never ran; empty if that is not so.
func (c *Container) StartError() string {
	s, _ := c.get()
	return s.StartError
}

func (c *Container) get() (state, uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.pid
}

// advance changes the container to a later state; an earlier or the same one changes nothing. It reports whether the
// state changed.
func (c *Container) advance(to cri.ContainerState, change func(*state)) (bool, error) {
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

// markDiscarded marks a container that never ran, before its process is killed.
func (c *Container) markDiscarded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Discarded = true
	return c.save(c.state)
}

// exitedDiscarded records the exit of a discarded container; it returns false for other containers.
func (c *Container) exitedDiscarded() bool {
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

func (c *Container) save(s state) error {
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

// Report is the container as the kubelet sees it.
func (c *Container) Report() cri.Container {
	s, pid := c.get()
	out := cri.Container{
		ID: c.Meta.ID, PodUID: c.Meta.PodUID, SandboxID: c.Meta.SandboxID, Name: c.Meta.Name, Attempt: c.Meta.Attempt, State: s.State,
		CreatedAt: c.Meta.CreatedAt, StartedAt: s.StartedAt, FinishedAt: s.FinishedAt,
		ExitCode: s.ExitCode, Lost: s.Lost, OOMKilled: s.OOMKilled, Image: c.Meta.Image, ImageID: c.Meta.ImageID,
		LogPath: c.Meta.LogPath, Cgroup: c.Meta.Cgroup, Labels: maps.Clone(c.Meta.Labels),
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
