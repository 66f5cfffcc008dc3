package cri

import (
	"context"
	"errors"
	"io"
	"net"

	"minik8s/internal/channels"
)

// Streams are the interactive connections to a running container. Every call lasts as long as the connection; the end
// of ctx ends the call and every process that it started.
type Streams interface {
	// Exec runs one more process in a running container, as the container's own user, with its environment, directory
	// and capabilities, and returns its exit code when it has ended and all of its output is written. The end of ctx
	// kills it, with what it started. The error is a *StartError if the command cannot be executed, and ErrNotRunning
	// if the container does not run.
	Exec(ctx context.Context, id string, cfg ExecConfig) (exit int32, err error)
	// Attach joins a running container's own streams until the container exits or ctx ends. Output from now on is
	// passed on; the log is written as before. A container blocks for a slow attached reader, but not for one that
	// has stopped reading. The error is ErrNotRunning if the container does not run.
	Attach(ctx context.Context, id string, cfg AttachConfig) error
	// PortForward connects to a port on the pod's own loopback address, as a process in the pod would
	// (on the node's, for a pod on the host's network). The caller closes the connection, which has a
	// CloseWrite method if it can be closed for one direction.
	PortForward(ctx context.Context, podUID string, port int32) (io.ReadWriteCloser, error)
	// Dial connects from within the pod's network to an address, as net.Dialer does; address has no name in it.
	Dial(ctx context.Context, podUID, network, address string) (net.Conn, error)
}

// ErrNotRunning is returned by Exec and Attach when the container does not run.
var ErrNotRunning = errors.New("the container is not running")

// ExecConfig is a process to be run in a container. Streams that are nil are not connected; with a TTY all output
// comes by Stdout. Stdout and Stderr are written concurrently; a write in progress at the end of ctx, or of a
// background process's output, is not waited for.
type ExecConfig struct {
	Command        []string
	TTY            bool
	Stdin          io.Reader // a read in progress when the process ends is not waited for
	Stdout, Stderr io.Writer
	Resize         <-chan TermSize // of the TTY; nil or closed: no changes
}

// AttachConfig are the streams to connect to a container's own. Stdin only reaches a container that was made with
// Stdin; with StdinOnce, the container's input ends with that of the first client.
type AttachConfig struct {
	Stdin          io.Reader // as in ExecConfig
	Stdout, Stderr io.Writer
	Resize         <-chan TermSize
}

// TermSize is the size of a terminal, in characters.
type TermSize = channels.TermSize
