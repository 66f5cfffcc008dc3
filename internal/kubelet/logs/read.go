package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

// Options says what to read and how to show it.
type Options struct {
	// Follow continues at the end until the container has exited.
	Follow bool
	// Tail is how many lines to begin with, from the end; negative: all.
	Tail int64
	// Since leaves out what was written before; zero: nothing.
	Since time.Time
	// Timestamps puts the time before each line.
	Timestamps bool
	// Limit is how many bytes to send; negative: all.
	Limit int64
	// Stream is "stdout" or "stderr"; empty: both.
	Stream string
}

// errEnough ends the reading at the limit.
var errEnough = errors.New("limit reached")

// Read writes the log at path to w. With opts.Follow it ends when exited is closed and everything is written, or with
// ctx; hub must then be set. The error is fs.ErrNotExist if there is no log.
func Read(ctx context.Context, hub *Hub, path string, opts Options, exited <-chan struct{}, w io.Writer) error {
	var changed <-chan struct{}
	if opts.Follow {
		// Watched before the first read, so that no change is missed.
		ch, stop, err := hub.watch(path)
		if err != nil {
			return err
		}
		defer stop()
		changed = ch
	}
	r := &reader{path: path, opts: opts, out: w, left: opts.Limit}
	defer r.close()
	if err := r.open(); err != nil {
		return err
	}
	for last := false; ; {
		err := r.drain()
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil || !opts.Follow || last {
			return err
		}
		select {
		case <-changed:
		case <-exited:
			last = true
		case <-ctx.Done():
			return nil
		}
	}
}

// reader goes through the parts of a log.
type reader struct {
	path  string
	opts  Options
	out   io.Writer
	left  int64
	queue []*os.File // not read yet
	file  *os.File   // the part being read
	src   *bufio.Reader
	rest  []byte // of a line whose end is not written yet
	// inside: the previous record was a part of a line, so no time stamp is written.
	inside bool
}

func (r *reader) close() {
	closeAll(r.queue)
	if r.file != nil {
		r.file.Close()
	}
}

// open opens the parts and moves to where the tail begins.
func (r *reader) open() error {
	files, err := parts(r.path)
	if err != nil {
		return err
	}
	if r.opts.Tail < 0 {
		r.queue = files
		return nil
	}
	want := r.opts.Tail
	for i := len(files) - 1; i >= 0; i-- {
		src, err := content(files[i])
		if err != nil {
			closeAll(files)
			return err
		}
		if want == 0 {
			_, err = src.Seek(0, io.SeekEnd)
		} else {
			var found int64
			found, err = seekTail(src, want)
			want -= found
		}
		if err != nil {
			closeAll(files)
			return err
		}
		if want > 0 && i > 0 {
			continue
		}
		closeAll(files[:i])
		r.begin(files[i], src)
		r.queue = files[i+1:]
		return nil
	}
	return nil
}

func (r *reader) begin(f *os.File, src io.Reader) {
	r.file = f
	r.src = bufio.NewReaderSize(src, blockSize)
	r.rest = nil
}

// drain writes everything there is now.
func (r *reader) drain() error {
	for {
		if r.file != nil {
			if err := r.readFile(); err != nil {
				return err
			}
		}
		if len(r.queue) == 0 {
			if err := r.more(); err != nil || len(r.queue) == 0 {
				return err
			}
			if r.file != nil { // what was written between its end and its rotation
				if err := r.readFile(); err != nil {
					return err
				}
			}
		}
		if r.file != nil {
			r.file.Close()
		}
		next := r.queue[0]
		r.queue = r.queue[1:]
		src, err := content(next)
		if err != nil {
			next.Close()
			r.file = nil
			return err
		}
		r.begin(next, src)
	}
}

// more opens parts that follow the one that was read to its end.
func (r *reader) more() (err error) {
	if r.file == nil || !r.opts.Follow {
		return nil
	}
	r.queue, err = after(r.path, r.file)
	return err
}

func (r *reader) readFile() error {
	for {
		chunk, err := r.src.ReadSlice('\n')
		r.rest = append(r.rest, chunk...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil // the rest of a line is kept until its end comes
		case err != nil:
			return err
		}
		err = r.show(bytes.TrimSuffix(r.rest, []byte{'\n'}))
		r.rest = r.rest[:0]
		if err != nil {
			return err
		}
	}
}

// show writes one record, if the options select it.
func (r *reader) show(raw []byte) error {
	l, err := parse(raw)
	if err != nil {
		return nil // damaged by a crash; the other lines are intact
	}
	if r.opts.Stream != "" && l.stream != r.opts.Stream {
		return nil
	}
	if !r.opts.Since.IsZero() && l.time().Before(r.opts.Since) {
		return nil
	}
	if r.opts.Timestamps && !r.inside {
		if err := r.write(append(append([]byte(nil), l.at...), ' ')); err != nil {
			return err
		}
	}
	r.inside = l.partial
	if !l.partial {
		l.content = append(l.content, '\n')
	}
	return r.write(l.content)
}

func (r *reader) write(p []byte) error {
	if r.opts.Limit >= 0 {
		p = p[:min(int64(len(p)), r.left)]
		r.left -= int64(len(p))
	}
	if _, err := r.out.Write(p); err != nil {
		return err
	}
	if r.opts.Limit >= 0 && r.left == 0 {
		return errEnough
	}
	return nil
}

// Tail is the end of the log at path: no more than that many lines and bytes.
func Tail(ctx context.Context, path string, lines, limit int64) (string, error) {
	var b strings.Builder
	err := Read(ctx, nil, path, Options{Tail: lines, Limit: -1}, nil, &b)
	text := b.String()
	return text[max(0, int64(len(text))-limit):], err
}
