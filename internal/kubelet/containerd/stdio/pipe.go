package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Pipe is an output pipe of a process that Exec started. It is read to its end even if its writer has failed: a
// process must not block on its output.
type Pipe struct {
	file *os.File
	keep *os.File // holds the pipe open for writing until the process does
	once sync.Once
	done chan struct{} // closed at its end

	bytes   atomic.Int64
	writing atomic.Bool
	muted   atomic.Bool
}

// OpenPipe makes a pipe and copies what comes through it. Opened must be called when the other end
// is open, or never will be.
func OpenPipe(path string, to io.Writer) (*Pipe, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("containerd: pipe: %w", err)
	}
	p := &Pipe{done: make(chan struct{})}
	var err error
	if p.file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		return nil, fmt.Errorf("containerd: pipe: %w", err)
	}
	if p.keep, err = os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err != nil {
		p.file.Close()
		return nil, fmt.Errorf("containerd: pipe: %w", err)
	}
	go p.copy(to)
	return p, nil
}

func (p *Pipe) copy(to io.Writer) {
	defer close(p.done)
	buf := make([]byte, maxLine)
	for {
		n, err := p.file.Read(buf)
		p.bytes.Add(int64(n))
		if n > 0 && to != nil && !p.muted.Load() {
			p.writing.Store(true)
			if _, err := to.Write(buf[:n]); err != nil {
				p.Mute()
			}
			p.writing.Store(false)
		}
		if err != nil {
			return
		}
	}
}

// Mute discards output from now on.
func (p *Pipe) Mute() { p.muted.Store(true) }

// Moved is how many bytes have been read so far.
func (p *Pipe) Moved() int64 { return p.bytes.Load() }

// Writing reports whether a write to the reader is in progress.
func (p *Pipe) Writing() bool { return p.writing.Load() }

// Done is closed at the end of the output.
func (p *Pipe) Done() <-chan struct{} { return p.done }

// Opened says that the other end is open, or never will be.
func (p *Pipe) Opened() { p.once.Do(func() { p.keep.Close() }) }

// Close stops reading.
func (p *Pipe) Close() {
	p.Opened()
	p.file.Close()
}

// MakeInput makes the pipe of a process's standard input, without a writer yet.
func MakeInput(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("containerd: stdin: %w", err)
	}
	return nil
}
