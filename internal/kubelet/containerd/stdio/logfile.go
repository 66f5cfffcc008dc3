package stdio

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"minik8s/internal/clock"
)

const (
	// rotatedTime is the suffix of a log that is no longer written to.
	rotatedTime = "20060102-150405.000000"
	// logRetry is after how long a failed write is retried, unless output comes before.
	logRetry = time.Second
	// maxPending is how many bytes of output are buffered while the log cannot be written, on a full disk for
	// example. More is dropped, because a container must not block on its output.
	maxPending = 256 << 10
)

// logFile is a container's log in the format of Kubernetes' container runtimes: each line is time, stream, F or P,
// and the text. Its methods are safe for concurrent use.
//
// A full disk does not end it: output that cannot be written is buffered and retried; what exceeds maxPending is
// dropped, and the number of bytes is logged. If the file cannot be renamed when it is full, it grows to twice the
// size, and is then truncated.
type logFile struct {
	path     string
	maxSize  int64
	maxFiles int
	log      *slog.Logger
	rename   func(from, to string) error // os.Rename

	mu      sync.Mutex
	file    *os.File // nil when closed
	size    int64
	buf     []byte
	pending []byte      // whole entries
	dropped int64       // bytes that did not fit into pending
	retry   *time.Timer // set while there is something pending
	warned  string      // the failure that was logged last
	moved   bool        // file has been renamed, and a new one could not be made yet
	retryAt time.Time   // when rotation may be tried again
}

func openLog(path string, maxSize int64, maxFiles int, log *slog.Logger) (*logFile, error) {
	l := &logFile{path: path, maxSize: maxSize, maxFiles: maxFiles, log: log, rename: os.Rename}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return l, l.open()
}

// open opens the file at path, in place of the previous one.
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
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.size, l.moved = f, st.Size(), false
	return nil
}

// write adds one entry. text has no newline at its end; partial says that its line goes on in the next one.
func (l *logFile) write(stream string, partial bool, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return
	}
	l.buf = clock.Now().UTC().AppendFormat(l.buf[:0], "2006-01-02T15:04:05.000000000Z07:00")
	l.buf = append(append(append(l.buf, ' '), stream...), " F "...)
	if partial {
		l.buf[len(l.buf)-2] = 'P'
	}
	l.buf = append(append(l.buf, text...), '\n')
	if len(l.pending) > 0 && !l.flush() || !l.put(l.buf) {
		l.hold(l.buf)
	}
}

// put appends whole entries, or nothing.
func (l *logFile) put(p []byte) bool {
	n, err := l.file.Write(p)
	l.size += int64(n)
	if err != nil {
		if n > 0 && l.file.Truncate(l.size-int64(n)) == nil {
			l.size -= int64(n)
		}
		l.failed("written", err)
		return false
	}
	if l.maxSize > 0 && l.size >= l.maxSize {
		l.rotate()
	}
	return true
}

// hold buffers an entry until it can be written.
func (l *logFile) hold(p []byte) {
	if len(l.pending)+len(p) > maxPending {
		l.dropped += int64(len(p))
		return
	}
	l.pending = append(l.pending, p...)
	if l.retry == nil {
		l.retry = time.AfterFunc(logRetry, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.file != nil && l.retry != nil && !l.flush() {
				l.retry.Reset(logRetry)
			}
		})
	}
}

// flush writes what is pending.
func (l *logFile) flush() bool {
	if !l.put(l.pending) {
		return false
	}
	l.pending, l.warned = nil, ""
	if l.retry != nil {
		l.retry.Stop()
		l.retry = nil
	}
	if l.dropped > 0 {
		l.log.Warn("a container's log can be written again, and some output is lost", "log", l.path, "bytes", l.dropped)
		l.dropped = 0
	}
	return true
}

func (l *logFile) failed(what string, err error) {
	if text := what + err.Error(); text != l.warned {
		l.log.Warn("a container's log could not be "+what+", trying again", "log", l.path, "err", err)
		l.warned = text
	}
}

// rotate renames the file and starts a new one; the oldest beyond what is kept are removed.
func (l *logFile) rotate() {
	now := clock.Now()
	if now.Before(l.retryAt) && l.size < 2*l.maxSize {
		return
	}
	if err := l.reopen(now); err != nil {
		l.failed("rotated", err)
		l.retryAt = now.Add(logRetry)
		if l.size >= 2*l.maxSize && l.file.Truncate(0) == nil {
			l.size = 0
		}
		return
	}
	l.retryAt, l.warned = time.Time{}, ""
	if err := l.dropOldest(); err != nil {
		l.failed("cleared of old parts", err)
	}
}

// reopen renames the file and opens a new one.
func (l *logFile) reopen(now time.Time) error {
	if !l.moved {
		// A file that was removed by others need not be renamed.
		if err := l.rename(l.path, l.path+"."+now.UTC().Format(rotatedTime)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		l.moved = true
	}
	return l.open()
}

func (l *logFile) dropOldest() error {
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
	var errs []error
	for len(old) > max(l.maxFiles-1, 0) {
		errs = append(errs, os.Remove(filepath.Join(filepath.Dir(l.path), old[0])))
		old = old[1:]
	}
	return errors.Join(errs...)
}

// close tries to write what is pending, and closes the log.
func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return
	}
	if len(l.pending) > 0 && !l.flush() {
		l.log.Warn("the end of a container's output is lost", "log", l.path, "bytes", l.dropped+int64(len(l.pending)))
	}
	if l.retry != nil {
		l.retry.Stop()
		l.retry = nil
	}
	l.file.Close()
	l.file, l.pending = nil, nil
}
