package cri

import (
	"context"
	"errors"
	"io"

	"minik8s/internal/channels"
)

// Streams are what connects a person with a container that runs. Every call lasts as long as the
// connection does; the end of ctx ends it and whatever it started.
type Streams interface {
	// Exec runs one more process in a running container, as the container's own user, with its
	// environment, directory and capabilities, and returns its exit code when it has ended and all of its
	// output is written. The end of ctx kills it, with what it started. A command that cannot be
	// executed is a *StartError; a container that does not run, ErrNotRunning.
	Exec(ctx context.Context, id string, cfg ExecConfig) (exit int32, err error)
	// Attach joins a running container's own streams until the container exits or ctx ends. Of its
	// output, what it writes from now on is passed on; its log is written as before. A container
	// waits for an attached reader, but not for one that has stopped reading.
	Attach(ctx context.Context, id string, cfg AttachConfig) error
	// PortForward connects to a port on the pod's own loopback address, as a process in the pod would
	// (on the node's, for a pod on the host's network). The caller closes the connection, which has a
	// CloseWrite method if it can be closed for one direction.
	PortForward(ctx context.Context, podUID string, port int32) (io.ReadWriteCloser, error)
}

// ErrNotRunning is of Exec and Attach when the container does not run.
var ErrNotRunning = errors.New("the container is not running")

// ExecConfig is a process to be run in a container. Streams that are nil are not connected; with a TTY
// all output comes by Stdout. Stdout and Stderr are written side by side; a write that is under way when
// ctx ends, or of something that was left in the background, is not waited for.
type ExecConfig struct {
	Command        []string
	TTY            bool
	Stdin          io.Reader // a read that is under way when the process ends is not waited for
	Stdout, Stderr io.Writer
	Resize         <-chan TermSize // of the TTY; nil or closed: no changes
}

// AttachConfig are the streams to connect to a container's own. What Stdin sends reaches a container
// that was made with Stdin; with StdinOnce, its input ends with that of the first who attached it.
type AttachConfig struct {
	Stdin          io.Reader // as in ExecConfig
	Stdout, Stderr io.Writer
	Resize         <-chan TermSize
}

// TermSize is the size of a terminal, in characters.
type TermSize = channels.TermSize
