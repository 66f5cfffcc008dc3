package streaming

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// ChunkSize is how much of an answer is built before it is sent. However long a list is, only this much of it is in
// memory at a time.
const ChunkSize = 64 << 10

// chunks are the buffers of the answers under way.
var chunks = sync.Pool{New: func() any { b := make([]byte, 0, ChunkSize); return &b }}

// Buffer returns an empty buffer for a chunk.
func Buffer() []byte { return *chunks.Get().(*[]byte) }

// Release keeps a buffer for the next answer, unless a large object has made it large.
func Release(buf []byte) {
	if cap(buf) <= 2*ChunkSize {
		b := buf[:0]
		chunks.Put(&b)
	}
}

// Reader remembers the error that reading has ended with, other than io.EOF: io.Copy does not say which side failed.
type Reader struct {
	io.Reader
	Err error
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.Copy compares the same way
		r.Err = err
	}
	return n, err
}

// Writer writes an answer in pieces. A client that does not read a piece in time is cut off, so that a stalled client
// does not hold memory for long. The time between pieces is not limited.
type Writer struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	// Buffered lets the connection decide when to send a piece; otherwise each piece is sent at once.
	Buffered bool
	// timeout is how long a piece may take.
	timeout time.Duration
}

// NewWriter writes an answer each of whose pieces may take timeout.
func NewWriter(w http.ResponseWriter, timeout time.Duration) *Writer {
	below := w
	if u, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		below = u.Unwrap() // echo's own Flush reports no error
	}
	p := &Writer{w: w, rc: http.NewResponseController(below), timeout: timeout}
	p.clearDeadline()
	return p
}

// clearDeadline removes the deadline that every answer has from the start, until the next piece sets one.
func (p *Writer) clearDeadline() {
	p.rc.SetWriteDeadline(time.Time{}) //nolint:errcheck // a connection without deadlines has none to clear
}

// Write implements io.Writer. It splits large writes into several pieces.
func (p *Writer) Write(b []byte) (n int, err error) {
	for len(b) > 2*ChunkSize && err == nil {
		var m int
		m, err = p.piece(b[:ChunkSize])
		n, b = n+m, b[ChunkSize:]
	}
	if err != nil {
		return n, err
	}
	m, err := p.piece(b)
	return n + m, err
}

func (p *Writer) piece(b []byte) (int, error) {
	p.rc.SetWriteDeadline(time.Now().Add(p.timeout)) //nolint:errcheck // some connections have no deadlines
	n, err := p.w.Write(b)
	if err != nil || p.Buffered {
		return n, err
	}
	if err := p.rc.Flush(); err != nil {
		return n, err
	}
	p.clearDeadline()
	return n, nil
}
