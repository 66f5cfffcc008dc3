package wire

import (
	"bytes"
	"strconv"
)

// Chunks reads a body in chunks and writes it anew: without extensions, and with at most one chunk for what came at a time.
type Chunks struct {
	state   chunkState
	left    int // of the present chunk
	digits  int
	line    int  // length of the present line that is not data
	Done    bool // the body has ended
	trailer []byte
}

type chunkState int

const (
	inSize chunkState = iota
	inExtension
	sizeEnd
	inData
	dataEnd
	dataEnd2
	inTrailer
)

// maxLine bounds the lines between chunks, and all trailers together.
const maxLine = 4 << 10

// Next takes what has come and appends to out what the client gets. n is how much of b it has taken: all of it, unless the body
// has ended. False: the body is malformed.
func (c *Chunks) Next(out, b []byte) (grown []byte, n int, ok bool) {
	for n < len(b) && !c.Done {
		switch ch := b[n]; c.state {
		case inSize:
			d, isHex := hex(ch)
			switch {
			case isHex:
				if c.digits++; c.digits > 15 {
					return out, n, false
				}
				c.left = c.left<<4 | d
			case c.digits == 0:
				return out, n, false
			case ch == '\r':
				c.state = sizeEnd
			case ch == ';' || ch == ' ' || ch == '\t':
				c.state, c.line = inExtension, 0
			default:
				return out, n, false
			}
			n++
		case inExtension:
			if c.line++; c.line > maxLine || ch < ' ' && ch != '\t' && ch != '\r' {
				return out, n, false
			}
			if ch == '\r' {
				c.state = sizeEnd
			}
			n++
		case sizeEnd:
			if ch != '\n' {
				return out, n, false
			}
			n++
			if c.state = inData; c.left == 0 {
				c.state, c.trailer = inTrailer, c.trailer[:0]
			}
		case inData:
			k := min(c.left, len(b)-n)
			out = AppendChunk(out, b[n:n+k])
			n += k
			if c.left -= k; c.left == 0 {
				c.state = dataEnd
			}
		case dataEnd:
			if ch != '\r' {
				return out, n, false
			}
			c.state = dataEnd2
			n++
		case dataEnd2:
			if ch != '\n' {
				return out, n, false
			}
			c.state, c.digits = inSize, 0
			n++
		case inTrailer:
			if len(c.trailer) > maxLine {
				return out, n, false
			}
			c.trailer = append(c.trailer, ch)
			n++
			if ch == '\n' {
				if out, ok = c.trailers(out); !ok {
					return out, n, false
				}
			}
		}
	}
	return out, n, true
}

// trailers looks whether the trailers have ended, and writes them then.
func (c *Chunks) trailers(out []byte) ([]byte, bool) {
	t := c.trailer
	if !bytes.HasSuffix(t, []byte("\r\n")) {
		return out, false
	}
	if len(t) > 2 && !bytes.HasSuffix(t, []byte("\r\n\r\n")) {
		return out, true
	}
	c.Done = true
	out = append(out, "0\r\n"...)
	for line := range bytes.SplitSeq(t[:len(t)-2], []byte("\r\n")) {
		if len(line) == 0 {
			continue
		}
		colon := nameEnd(line)
		if colon <= 0 || !plainValue(line[colon+1:]) {
			return out, false
		}
		if k := kindOf(line[:colon]); k == passed {
			out = append(append(out, line...), "\r\n"...)
		}
	}
	return append(out, "\r\n"...), true
}

// AppendChunk appends data as a chunk; nothing for no data, as that would end the body.
func AppendChunk(out, data []byte) []byte {
	if len(data) == 0 {
		return out
	}
	out = strconv.AppendUint(out, uint64(len(data)), 16)
	out = append(out, "\r\n"...)
	out = append(out, data...)
	return append(out, "\r\n"...)
}

func hex(c byte) (int, bool) {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0'), true
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10, true
	}
	return 0, false
}

// Reset makes it ready for another body.
func (c *Chunks) Reset() { *c = Chunks{trailer: c.trailer[:0]} }
