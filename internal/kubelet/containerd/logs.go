package containerd

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxLine is how much of a line is written at once; a longer one becomes several entries, all but
// the last marked P.
const maxLine = 16 << 10

// lines cuts a stream into log entries. It holds what came of a line that has not ended yet.
type lines struct {
	stream string
	to     *logFile
	rest   []byte
}

func (l *lines) feed(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		room := maxLine - len(l.rest)
		switch {
		case i >= 0 && i <= room:
			l.flush(p[:i], false)
			p = p[i+1:]
		case len(p) >= room && (i < 0 || i > room):
			if len(p) == room {
				// Whether the line ends here is seen only by what comes next.
				l.rest = append(l.rest, p...)
				return
			}
			l.flush(p[:room], true)
			p = p[room:]
		default:
			l.rest = append(l.rest, p...)
			return
		}
	}
}

func (l *lines) flush(p []byte, partial bool) {
	if len(l.rest) == 0 {
		l.to.write(l.stream, partial, p)
		return
	}
	l.rest = append(l.rest, p...)
	l.to.write(l.stream, partial, l.rest)
	l.rest = nil // not kept: most streams are silent most of the time
}

// end writes what there is of a line that has no newline, at the end of the stream or of this run; readers
// then show none either.
func (l *lines) end() {
	if len(l.rest) > 0 {
		l.flush(nil, true)
	}
}

// readBuffers are shared by all streams; a silent one holds none.
var readBuffers = sync.Pool{New: func() any { return new([maxLine]byte) }}

// logPump copies a container's two pipes to its log until both have ended.
type logPump struct {
	log   *logFile
	taps  taps // who is attached
	pipes []*os.File
	// keep holds the pipes open for writing until the shim does, so that they do not seem to have ended.
	keep []*os.File
	done chan struct{}
	warn *slog.Logger

	leaving atomic.Bool // detach was called
	once    sync.Once
}

// startPump opens the pipes in dir, making them if they are not there, and begins to copy. fresh
// says that their other end is still to be opened; opened must then be called when it is.
func startPump(dir, path string, tty, fresh bool, cfg *Config) (*logPump, error) {
	log, err := openLog(path, cfg.LogMaxSize, cfg.LogMaxFiles, cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("containerd: log: %w", err)
	}
	p := &logPump{log: log, done: make(chan struct{}), warn: cfg.Log}
	streams := []string{"stdout", "stderr"}
	if tty {
		streams = streams[:1]
	}
	for _, s := range streams {
		name := filepath.Join(dir, s)
		if err := unix.Mkfifo(name, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
			p.shut()
			return nil, fmt.Errorf("containerd: log pipe: %w", err)
		}
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			p.shut()
			return nil, fmt.Errorf("containerd: log pipe: %w", err)
		}
		p.pipes = append(p.pipes, f)
		if fresh {
			w, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				p.shut()
				return nil, fmt.Errorf("containerd: log pipe: %w", err)
			}
			p.keep = append(p.keep, w)
		}
	}
	var wg sync.WaitGroup
	for i, f := range p.pipes {
		l := &lines{stream: streams[i], to: log}
		wg.Go(func() {
			if err := copyLines(f, l, &p.taps); err != nil && !p.leaving.Load() {
				p.warn.Warn("a container's output cannot be read any more", "log", path, "err", err)
			}
			l.end()
		})
	}
	go func() {
		wg.Wait()
		p.shut()
		close(p.done)
	}()
	return p, nil
}

func copyLines(f *os.File, l *lines, also *taps) error {
	rc, err := f.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var n int
		var buf *[maxLine]byte
		var readErr error
		// The buffer is taken only when there is something to read.
		err := rc.Read(func(fd uintptr) bool {
			if buf == nil {
				buf = readBuffers.Get().(*[maxLine]byte)
			}
			for {
				n, readErr = unix.Read(int(fd), buf[:])
				if readErr != unix.EINTR {
					break
				}
			}
			if readErr == unix.EAGAIN {
				readBuffers.Put(buf)
				buf = nil
				return false
			}
			return true
		})
		if buf != nil {
			if n > 0 && err == nil && readErr == nil {
				l.feed(buf[:n])
				also.write(l.stream, buf[:n])
			}
			readBuffers.Put(buf)
		}
		switch {
		case err != nil:
			return err
		case readErr != nil:
			return readErr
		case n == 0:
			return nil
		}
	}
}

// opened is called when the shim has the pipes open.
func (p *logPump) opened() {
	if p == nil {
		return
	}
	p.once.Do(func() {
		for _, f := range p.keep {
			f.Close()
		}
	})
}

// finished waits until all output is written, but no longer than d: a process that was left behind
// may hold the pipe open.
func (p *logPump) finished(d time.Duration) {
	if p == nil {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	}
}

// detach stops reading. The pipes keep what is written to them, up to their size, for the next run.
func (p *logPump) detach() {
	if p == nil {
		return
	}
	p.leaving.Store(true)
	p.opened()
	for _, f := range p.pipes {
		f.Close()
	}
	<-p.done
}

func (p *logPump) shut() {
	p.opened()
	for _, f := range p.pipes {
		f.Close()
	}
	p.log.close()
}
