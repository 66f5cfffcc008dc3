package login

import (
	"io"
	"sync"
	"time"
)

// stallLimit is how long a host may leave all that it was asked for files unanswered. The disks of a login node may hang while its
// sshd still gives signs of life, and requests of SFTP have no deadlines of their own.
const stallLimit = time.Minute

// stall calls a function when requests are open and nothing has come for a while. Without open requests it has no timer running.
type stall struct {
	limit time.Duration
	fire  func()

	mu    sync.Mutex
	open  int
	timer *time.Timer
}

// sent and came note requests, and what comes: bytes, and answers that are whole.
func (s *stall) sent(requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += requests
	if s.open > 0 && s.timer == nil {
		s.timer = time.AfterFunc(s.limit, s.fire)
	}
}

func (s *stall) came(answers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open -= answers
	switch {
	case s.timer == nil:
	case s.open <= 0:
		s.timer.Stop()
		s.timer = nil
	default:
		s.timer.Reset(s.limit)
	}
}

// frames counts the packets of a stream of SFTP: each has its length before it, in four bytes. Each request has one answer.
type frames struct {
	head [4]byte
	got  int // bytes of head
	left int // bytes of the packet
}

func (f *frames) count(p []byte) (n int) {
	for len(p) > 0 {
		if f.got < len(f.head) {
			k := copy(f.head[f.got:], p)
			f.got, p = f.got+k, p[k:]
			if f.got < len(f.head) {
				return n
			}
			f.left = int(f.head[0])<<24 | int(f.head[1])<<16 | int(f.head[2])<<8 | int(f.head[3])
		}
		k := min(f.left, len(p))
		f.left, p = f.left-k, p[k:]
		if f.left == 0 {
			n, f.got = n+1, 0
		}
	}
	return n
}

// watchedWriter and watchedReader are the two directions.
type watchedWriter struct {
	io.WriteCloser
	frames
	s *stall
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.s.sent(w.count(p))
	return w.WriteCloser.Write(p)
}

type watchedReader struct {
	io.Reader
	frames
	s *stall
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.s.came(r.count(p[:n]))
	return n, err
}
