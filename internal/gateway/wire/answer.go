package wire

import "bytes"

// Answer is the head of an answer.
type Answer struct {
	Status int
	// Line is the status line after the version, without its end: "200 OK".
	Line  Span
	Lines []Span // header lines for the client, without their ends
	Size  int    // of the head
	// Length is that of the body: -1 in chunks, -2 until the connection ends.
	Length int
	// Keep says that the connection may be used again once the body has been read.
	Keep bool

	hop []Span // names of headers that are for the next hop only
}

// What Length says beside a number.
const (
	Chunked  = -1
	UntilEnd = -2
)

// Read reads a head. more: it is not whole yet; false: it is malformed. head says that the answer is to HEAD.
func (a *Answer) Read(b []byte, head bool) (more, ok bool) {
	end := headEnd(b)
	if end < 0 {
		return true, true
	}
	a.Length, a.Lines, a.hop, a.Keep = UntilEnd, a.Lines[:0], a.hop[:0], true
	if len(b) < 13 || string(b[:7]) != "HTTP/1." || b[7] != '0' && b[7] != '1' || b[8] != ' ' {
		return false, false
	}
	stop := bytes.IndexByte(b, '\n')
	line := bytes.TrimSuffix(b[9:stop], []byte("\r"))
	n, isNumber := number(line[:min(3, len(line))])
	if !isNumber || n < 100 || n > 999 || len(line) > 3 && line[3] != ' ' || !plainValue(line) {
		return false, false
	}
	a.Status, a.Line, a.Keep = n, Span{9, 9 + len(line)}, b[7] == '1'
	chunked, length := false, -1
	for at := stop + 1; ; {
		stop = at + bytes.IndexByte(b[at:end], '\n')
		line := bytes.TrimSuffix(b[at:stop], []byte("\r"))
		if len(line) == 0 {
			a.Size = stop + 1
			break
		}
		colon := nameEnd(line)
		if colon <= 0 {
			return false, false
		}
		name, value := line[:colon], trim(line[colon+1:])
		if !plainValue(value) {
			return false, false
		}
		switch kindOfAnswer(name) {
		case dropped:
		case connection:
			a.connection(b, at+colon+1, stop)
		case contentLength:
			n, ok := number(value)
			if !ok || length >= 0 && length != n {
				return false, false
			}
			if length < 0 && n >= 0 {
				a.Lines = append(a.Lines, Span{at, at + len(line)})
			}
			length = n
		case transferEncoding:
			if chunked || !fold(value, "chunked") {
				return false, false
			}
			chunked = true
		default:
			a.Lines = append(a.Lines, Span{at, at + len(line)})
		}
		at = stop + 1
	}
	a.drop(b, chunked || a.Status == 204 || a.Status < 200)
	switch {
	case head || a.Status < 200 || a.Status == 204 || a.Status == 304:
		a.Length = 0
	case chunked:
		a.Length = Chunked
		a.Keep = a.Keep && length < 0 // who says both may mean either
	case length >= 0:
		a.Length = length
	default:
		a.Keep = false
	}
	return false, true
}

// connection reads what a Connection header names.
func (a *Answer) connection(b []byte, from, to int) {
	for from < to {
		next := to
		if i := bytes.IndexByte(b[from:to], ','); i >= 0 {
			next = from + i
		}
		for from < next && (b[from] == ' ' || b[from] == '\t') {
			from++
		}
		word := trim(bytes.TrimSuffix(b[from:next], []byte("\r")))
		switch {
		case fold(word, "close"):
			a.Keep = false
		case len(word) > 0 && !fold(word, "keep-alive"):
			a.hop = append(a.hop, Span{from, from + len(word)})
		}
		from = next + 1
	}
}

// drop removes the lines that Connection names, and the length if something else says where the body ends.
func (a *Answer) drop(b []byte, length bool) {
	if len(a.hop) == 0 && !length {
		return
	}
	kept := a.Lines[:0]
next:
	for _, l := range a.Lines {
		name := b[l.From : l.From+nameEnd(l.Of(b))]
		if length && fold(name, "content-length") {
			continue
		}
		for _, h := range a.hop {
			if bytes.EqualFold(h.Of(b), name) {
				continue next
			}
		}
		kept = append(kept, l)
	}
	a.Lines = kept
}

// headEnd is where a head has ended for certain; -1: it is not whole.
func headEnd(b []byte) int {
	if i := bytes.Index(b, []byte("\r\n\r\n")); i >= 0 {
		return i + 4
	}
	for i := 0; ; { // some servers end lines with a newline alone
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return -1
		}
		i += j + 1
		switch rest := b[i:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return i + 1
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return i + 2
		}
	}
}
