package containerd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// outlet is the pipe of a process's output, read until its end whatever becomes of who listens: a
// process must not hang on its output.
type outlet struct {
	file *os.File
	keep *os.File // holds the pipe open for writing until the shim does
	once sync.Once
	done chan struct{} // closed at its end

	bytes   atomic.Int64
	writing atomic.Bool
	muted   atomic.Bool
}

// openOutlet makes a pipe and copies what comes through it. opened must be called when the other end
// is open, or never will be.
func openOutlet(path string, to io.Writer) (*outlet, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("containerd: pipe: %w", err)
	}
	o := &outlet{done: make(chan struct{})}
	var err error
	if o.file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		return nil, fmt.Errorf("containerd: pipe: %w", err)
	}
	if o.keep, err = os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err != nil {
		o.file.Close()
		return nil, fmt.Errorf("containerd: pipe: %w", err)
	}
	go o.copy(to)
	return o, nil
}

func (o *outlet) copy(to io.Writer) {
	defer close(o.done)
	buf := make([]byte, maxLine)
	for {
		n, err := o.file.Read(buf)
		o.bytes.Add(int64(n))
		if n > 0 && to != nil && !o.muted.Load() {
			o.writing.Store(true)
			if _, err := to.Write(buf[:n]); err != nil {
				o.mute()
			}
			o.writing.Store(false)
		}
		if err != nil {
			return
		}
	}
}

// mute throws away what comes from now on.
func (o *outlet) mute() { o.muted.Store(true) }

// moved is how much has come so far.
func (o *outlet) moved() int64 { return o.bytes.Load() }

// opened says that the other end is open, or never will be.
func (o *outlet) opened() { o.once.Do(func() { o.keep.Close() }) }

func (o *outlet) close() {
	o.opened()
	o.file.Close()
}

// sessionOf are the processes of the session that pid leads, itself included.
func sessionOf(pid uint32) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil || pid == 0 {
		return nil
	}
	var list []int
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may hold anything. After it: state, parent, group, session.
		_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
		if f := strings.Fields(rest); len(f) > 3 && f[3] == strconv.FormatUint(uint64(pid), 10) {
			list = append(list, n)
		}
	}
	return list
}
