package stdio

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

// lines cuts a stream into log entries. It holds the beginning of a line that is not complete yet.
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
				// Only the next bytes show whether the line ends here.
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
	l.rest = nil // released: most streams are silent most of the time
}

// end writes an incomplete line, without a newline, at the end of the stream or of this run; readers of the log add
// none either.
func (l *lines) end() {
	if len(l.rest) > 0 {
		l.flush(nil, true)
	}
}

// readBuffers are shared by all streams; a silent stream has none.
var readBuffers = sync.Pool{New: func() any { return new([maxLine]byte) }}

// Output copies a container's two pipes to its log, and to its listeners, until both have ended. Its methods do nothing
// for nil: a container without output.
type Output struct {
	log       *logFile
	listeners listeners
	pipes     []*os.File
	// keep holds the pipes open for writing until the process does: a pipe without a writer reads as ended.
	keep []*os.File
	done chan struct{}
	warn *slog.Logger

	detached atomic.Bool
	once     sync.Once
}

// Config says where output comes from and goes to.
type Config struct {
	// Dir is where the pipes are: stdout and stderr. They are made if they are not there.
	Dir string
	// LogPath is the file they go to. It is rotated at LogMaxSize bytes, and LogMaxFiles are kept, the current one
	// included.
	LogPath     string
	LogMaxSize  int64
	LogMaxFiles int
	// TTY says that there is only stdout.
	TTY bool
	// Fresh says that nobody has opened the pipes yet; Opened must be called when it has.
	Fresh bool
	Log   *slog.Logger
}

// Start opens the pipes and begins to copy.
func Start(cfg Config) (*Output, error) {
	log, err := openLog(cfg.LogPath, cfg.LogMaxSize, cfg.LogMaxFiles, cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("containerd: log: %w", err)
	}
	o := &Output{log: log, done: make(chan struct{}), warn: cfg.Log}
	streams := []string{"stdout", "stderr"}
	if cfg.TTY {
		streams = streams[:1]
	}
	for _, s := range streams {
		name := filepath.Join(cfg.Dir, s)
		if err := unix.Mkfifo(name, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
			o.shut()
			return nil, fmt.Errorf("containerd: log pipe: %w", err)
		}
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			o.shut()
			return nil, fmt.Errorf("containerd: log pipe: %w", err)
		}
		o.pipes = append(o.pipes, f)
		if cfg.Fresh {
			w, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				o.shut()
				return nil, fmt.Errorf("containerd: log pipe: %w", err)
			}
			o.keep = append(o.keep, w)
		}
	}
	var wg sync.WaitGroup
	for i, f := range o.pipes {
		l := &lines{stream: streams[i], to: log}
		wg.Go(func() {
			if err := copyLines(f, l, &o.listeners); err != nil && !o.detached.Load() {
				o.warn.Warn("a container's output cannot be read any more", "log", cfg.LogPath, "err", err)
			}
			l.end()
		})
	}
	go func() {
		wg.Wait()
		o.shut()
		close(o.done)
	}()
	return o, nil
}

// copyLines copies a pipe until it ends.
func copyLines(f *os.File, l *lines, also *listeners) error {
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

// Opened is to be called when the process has the pipes open.
func (o *Output) Opened() {
	if o == nil {
		return
	}
	o.once.Do(func() {
		for _, f := range o.keep {
			f.Close()
		}
	})
}

// Wait waits until all output is written, but no longer than d: a background process may hold the pipe open.
func (o *Output) Wait(d time.Duration) {
	if o == nil {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-o.done:
	case <-t.C:
	}
}

// Detach stops reading. The pipes hold further output, up to their size, for the next run.
func (o *Output) Detach() {
	if o == nil {
		return
	}
	o.detached.Store(true)
	o.Opened()
	for _, f := range o.pipes {
		f.Close()
	}
	<-o.done
}

func (o *Output) shut() {
	o.Opened()
	for _, f := range o.pipes {
		f.Close()
	}
	o.log.close()
}
