package plain

import (
	"io"
	"net/http"

	"minik8s/internal/gateway/pages"
	"minik8s/internal/gateway/wire"
	"minik8s/internal/idle"
)

const (
	maxHead  = 256 << 10 // of an answer
	spliceAt = 64 << 10  // from which on the kernel moves a body
)

// relay passes on the answer whose first bytes are in s.in. keep says that the connection to the endpoint may be used
// again, ok that to the client.
func (c *client) relay(s *scratch, u *idle.Conn, head bool) (keep, ok bool) {
	a := &c.answer
	for {
		more, valid := a.Read(s.in, head)
		switch {
		case !valid || more && len(s.in) >= maxHead || !more && a.Status == 101: // nobody asked for another protocol
			return false, c.complain("The endpoint's answer is malformed.", head)
		case !more && a.Status >= 200:
			return c.relayBody(s, u)
		case !more: // what comes before the answer is not for the client
			s.in = append(s.in[:0], s.in[a.Size:]...)
			if len(s.in) > 0 {
				continue
			}
		}
		if !s.fill(u) {
			return false, c.complain("The endpoint has broken off its answer.", head)
		}
	}
}

// complain answers for an endpoint whose answer cannot be passed on, if the client is still there.
func (c *client) complain(why string, head bool) bool {
	c.watch.end()
	return !c.watch.left && c.say(pages.New(http.StatusBadGateway, why), head, c.req.Close)
}

// fill reads more of a head.
func (s *scratch) fill(u *idle.Conn) bool {
	if len(s.in) == cap(s.in) {
		s.in = append(make([]byte, 0, 2*cap(s.in)), s.in...)
	}
	n, err := u.Read(s.in[len(s.in):cap(s.in)])
	s.in = s.in[:len(s.in)+max(n, 0)]
	return n > 0 || err == nil
}

// relayBody passes on an answer whose head has been read.
func (c *client) relayBody(s *scratch, u *idle.Conn) (keep, ok bool) {
	c.watch.answer()
	a := &c.answer
	out := append(append(s.out[:0], "HTTP/1.1 "...), a.Line.Of(s.in)...)
	for _, l := range a.Lines {
		out = append(append(out, "\r\n"...), l.Of(s.in)...)
	}
	if a.Length < 0 {
		out = append(out, "\r\nTransfer-Encoding: chunked"...)
	}
	if c.s.stopping.Load() {
		c.req.Close = true
	}
	if c.req.Close {
		out = append(out, "\r\nConnection: close"...)
	}
	out = append(out, "\r\n\r\n"...)
	rest := s.in[a.Size:]
	defer func() { s.out, s.in = out[:0], s.in[:cap(s.in)] }()
	if a.Length < 0 {
		out, keep, ok = c.relayStream(s, u, out, rest)
		return keep, ok
	}
	n := min(len(rest), a.Length)
	out = append(out, rest[:n]...)
	if _, err := c.conn.Write(out); err != nil {
		return false, false
	}
	left := a.Length - n
	if left == 0 {
		return a.Keep && len(rest) == n, true // what nobody asked for makes the connection useless
	}
	moved, err := c.move(u, int64(left))
	done := err == nil && moved == int64(left)
	return done && a.Keep, done
}

// move copies n bytes of a body.
func (c *client) move(u *idle.Conn, n int64) (int64, error) {
	if to, direct := c.conn.(io.ReaderFrom); direct && n >= spliceAt {
		return to.ReadFrom(&io.LimitedReader{R: u.Conn, N: n})
	}
	buf := Buffers{}.Get()
	defer Buffers{}.Put(buf)
	moved := int64(0)
	for moved < n {
		k, err := u.Read(buf[:min(int64(len(buf)), n-moved)])
		if k > 0 {
			if _, werr := c.conn.Write(buf[:k]); werr != nil {
				return moved, werr
			}
			moved += int64(k)
		}
		if err != nil && moved < n {
			return moved, err
		}
	}
	return moved, nil
}

// relayStream passes on a body whose length nobody has said, each piece as it comes. out is the head, rest what has been
// read of the body.
func (c *client) relayStream(s *scratch, u *idle.Conn, out, rest []byte) (_ []byte, keep, ok bool) {
	a := &c.answer
	c.chunks.Reset()
	buf := []byte(nil)
	for begun := false; ; begun = true {
		used := len(rest)
		if a.Length == wire.Chunked {
			if out, used, ok = c.chunks.Next(out, rest); !ok {
				return out, false, !begun && c.complain("The endpoint's answer is malformed.", false)
			}
		} else {
			out = wire.AppendChunk(out, rest)
		}
		if len(out) > 0 {
			if _, err := c.conn.Write(out); err != nil {
				return out, false, false
			}
			out = out[:0]
		}
		if c.chunks.Done {
			return out, a.Keep && used == len(rest), true
		}
		if buf == nil {
			buf = Buffers{}.Get()
			defer Buffers{}.Put(buf)
		}
		n, err := u.Read(buf)
		rest = buf[:max(n, 0)]
		switch {
		case n > 0:
		case err == io.EOF && a.Length == wire.UntilEnd:
			_, err := c.conn.Write([]byte("0\r\n\r\n"))
			return out, false, err == nil
		case err != nil:
			return out, false, false // the client learns that by a body without an end
		}
	}
}
