package containerd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxLine is how much of a line is written at once; a longer one becomes several entries, all but
	// the last marked P.
	maxLine = 16 << 10
	// rotatedTime is the suffix of a log that is no longer written to.
	rotatedTime = "20060102-150405.000000"
)

// logFile is a container's log in the format of Kubernetes' container runtimes: each line is
// time, stream, F or P, and the text. Its methods may be called side by side.
type logFile struct {
	path     string
	maxSize  int64
	maxFiles int

	mu   sync.Mutex
	file *os.File
	size int64
	buf  []byte
}

func openLog(path string, maxSize int64, maxFiles int) (*logFile, error) {
	l := &logFile{path: path, maxSize: maxSize, maxFiles: maxFiles}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size = f, st.Size()
	return nil
}

// write adds one entry. text has no newline at its end.
func (l *logFile) write(stream string, partial bool, text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return os.ErrClosed
	}
	l.buf = time.Now().UTC().AppendFormat(l.buf[:0], "2006-01-02T15:04:05.000000000Z07:00")
	l.buf = append(append(append(l.buf, ' '), stream...), " F "...)
	if partial {
		l.buf[len(l.buf)-2] = 'P'
	}
	l.buf = append(append(l.buf, text...), '\n')
	n, err := l.file.Write(l.buf)
	l.size += int64(n)
	if err != nil {
		return err
	}
	if l.maxSize > 0 && l.size >= l.maxSize && !partial {
		return l.rotate()
	}
	return nil
}

// rotate moves the file aside and starts a new one; the oldest beyond what is kept are removed.
func (l *logFile) rotate() error {
	if err := os.Rename(l.path, l.path+"."+time.Now().UTC().Format(rotatedTime)); err != nil {
		return err
	}
	l.file.Close()
	l.file = nil
	if err := l.open(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Dir(l.path))
	if err != nil {
		return err
	}
	var old []string
	for _, e := range entries {
		if suffix, ok := strings.CutPrefix(e.Name(), filepath.Base(l.path)+"."); ok {
			if _, err := time.Parse(rotatedTime, suffix); err == nil {
				old = append(old, e.Name())
			}
		}
	}
	slices.Sort(old)
	for len(old) > max(l.maxFiles-1, 0) {
		if err := os.Remove(filepath.Join(filepath.Dir(l.path), old[0])); err != nil {
			return err
		}
		old = old[1:]
	}
	return nil
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// lines cuts a stream into log entries. It holds what came of a line that has not ended yet.
type lines struct {
	stream string
	to     *logFile
	rest   []byte
	inside bool // an entry of this line has been written already
}

func (l *lines) feed(p []byte) error {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		room := maxLine - len(l.rest)
		switch {
		case i >= 0 && i <= room:
			if err := l.flush(p[:i], false); err != nil {
				return err
			}
			p = p[i+1:]
		case len(p) >= room && (i < 0 || i > room):
			if len(p) == room {
				// Whether the line ends here is seen only by what comes next.
				l.rest = append(l.rest, p...)
				return nil
			}
			if err := l.flush(p[:room], true); err != nil {
				return err
			}
			p = p[room:]
		default:
			l.rest = append(l.rest, p...)
			return nil
		}
	}
	return nil
}

func (l *lines) flush(p []byte, partial bool) error {
	l.inside = partial
	if len(l.rest) == 0 {
		return l.to.write(l.stream, partial, p)
	}
	l.rest = append(l.rest, p...)
	err := l.to.write(l.stream, partial, l.rest)
	l.rest = nil // not kept: most streams are silent most of the time
	return err
}

// end writes a last line that has no newline.
func (l *lines) end() error {
	if len(l.rest) == 0 {
		return nil
	}
	return l.flush(nil, false)
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
	log, err := openLog(path, cfg.LogMaxSize, cfg.LogMaxFiles)
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
			err := copyLines(f, l, &p.taps)
			switch {
			case err == nil:
			case p.leaving.Load():
				// The rest of the line comes with the next run.
				if len(l.rest) > 0 {
					err = l.flush(nil, true)
				}
			default:
				p.warn.Warn("a container's output could not be logged", "log", path, "err", err)
				drain(f)
			}
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
				err = l.feed(buf[:n])
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
			return l.end()
		}
	}
}

// drain reads on when the log cannot be written (a full disk): a container must not hang on its output.
func drain(f *os.File) { io.Copy(io.Discard, f) }

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
