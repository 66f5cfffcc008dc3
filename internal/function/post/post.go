package post

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"minik8s/internal/idle"
)

const (
	// maxHead is how long the head of an answer may be, in bytes.
	maxHead = 64 << 10
	// atOnce is the longest body that is written before the answer is read: a socket takes as much although nobody reads. While a longer
	// one is written, the answer may come already.
	atOnce = 16 << 10
	// maxInterim is how many interim answers (1xx) may come before the real one.
	maxInterim = 8
	// writeTime is how much later than its answer the end of a long request may be noticed, for its connection to be used again.
	writeTime = 50 * time.Millisecond
)

// Header is a request's header field.
type Header struct{ Name, Value string }

// Progress is how far a request has come.
type Progress int

// Impossible: no server would get it, for it cannot be sent. Unsent: nothing of it was written. Sent: something of it may have been.
const (
	Impossible Progress = iota
	Unsent
	Sent
)

// Send sends a request to the server of a pool and passes the answer to read, which reads its body and whose error Send returns. The
// request, and read, end with ctx at the latest.
func Send(ctx context.Context, to *idle.Pool, headers []Header, body []byte, read func(*http.Response) error) (Progress, error) {
	request, err := head(to.Address, headers, len(body))
	if err != nil {
		return Impossible, err
	}
	for fresh := false; ; {
		conn, reused, err := to.Get(ctx, fresh)
		if err != nil {
			return Unsent, err
		}
		if reused && !conn.Alive() {
			conn.Close() //nolint:errcheck // the server has closed it
			continue
		}
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // a connection that is closed ends anyway
		if ctx.Err() != nil {
			stop()
			conn.Close() //nolint:errcheck // nothing was sent
			return Unsent, ctx.Err()
		}
		e := exchange{conn: conn}
		err = e.run(request, body, read)
		if stop() && e.again && err == nil {
			to.Put(conn)
			return Sent, nil
		}
		conn.Close() //nolint:errcheck // what counts was read, or err
		switch {
		case !e.untouched:
			return Sent, err
		case !reused || ctx.Err() != nil:
			return Unsent, err
		}
		fresh = true // the server has closed that one at this moment
	}
}

// head is the head of a request.
func head(address string, headers []Header, length int) ([]byte, error) {
	b := make([]byte, 0, 512)
	b = append(append(append(b, "POST / HTTP/1.1\r\nHost: "...), address...), "\r\nUser-Agent: minik8s\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	for _, h := range headers {
		if !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(h.Value) {
			return nil, fmt.Errorf("%s: %q cannot be sent as a header", h.Name, h.Value)
		}
		b = append(append(append(append(b, "\r\n"...), h.Name...), ": "...), h.Value...)
	}
	return append(b, "\r\n\r\n"...), nil
}

// exchange is a request and its answer on a connection.
type exchange struct {
	conn      net.Conn
	again     bool // the connection may be used for another one
	untouched bool // the request could not be written, not even in part
}

// written is how the writing of a request has ended.
type written struct {
	n   int64
	err error
}

// readers are for answers that are being read.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

// run writes a request and reads its answer.
func (e *exchange) run(request, body []byte, read func(*http.Response) error) error {
	wrote := make(chan written, 1)
	if len(body) <= atOnce {
		n, err := e.conn.Write(append(request, body...))
		if e.untouched = err != nil && n == 0; e.untouched {
			return err
		}
		wrote <- written{int64(n), err}
	} else {
		go func() {
			parts := net.Buffers{request, body}
			n, err := parts.WriteTo(e.conn)
			wrote <- written{n, err}
		}()
	}
	limited := &io.LimitedReader{R: e.conn, N: maxHead}
	r := readers.Get().(*bufio.Reader)
	r.Reset(limited)
	defer func() {
		r.Reset(nil)
		readers.Put(r)
	}()
	resp, err := answer(r)
	if err != nil {
		if limited.N <= 0 {
			return fmt.Errorf("the head of the answer has more than %d bytes", maxHead)
		}
		select {
		case w := <-wrote: // why there is no answer, if it could not be written
			if w.err != nil {
				e.untouched = w.n == 0
				return w.err
			}
		default:
		}
		return err
	}
	limited.N = 1 << 62
	all := &whole{ReadCloser: resp.Body}
	resp.Body = all
	if err := read(resp); err != nil {
		return err
	}
	if !all.read || resp.Close || resp.StatusCode < 200 || r.Buffered() > 0 {
		return nil
	}
	if len(body) <= atOnce {
		e.again = (<-wrote).err == nil
		return nil
	}
	t := time.NewTimer(writeTime)
	defer t.Stop()
	select {
	case w := <-wrote:
		e.again = w.err == nil
	case <-t.C: // it answered before it had read all
	}
	return nil
}

// whole is a body that knows whether all of it was read.
type whole struct {
	io.ReadCloser
	read bool
}

func (w *whole) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	w.read = w.read || errors.Is(err, io.EOF)
	return n, err
}

// answer reads the head of an answer, after interim ones.
func answer(r *bufio.Reader) (*http.Response, error) {
	for range maxInterim {
		resp, err := http.ReadResponse(r, nil)
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode >= 200 || resp.StatusCode < 100 {
			return resp, nil
		}
	}
	return nil, fmt.Errorf("more than %d interim answers", maxInterim)
}
