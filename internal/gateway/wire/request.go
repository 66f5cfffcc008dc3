package wire

import "bytes"

// Span is a part of the buffer that a head was read from.
type Span struct{ From, To int }

// Of is the part of the buffer.
func (s Span) Of(b []byte) []byte { return b[s.From:s.To] }

// maxLines bounds the header lines that a request passes on.
const maxLines = 64

// Request is the head of a plain request.
type Request struct {
	Method, Host Span
	// Path has neither dots between slashes nor escapes; Query has its question mark.
	Path, Query Span
	// Lines are the header lines, with their ends, that belong to the next hop.
	Lines [maxLines]Span
	N     int
	// Size is that of the head; Length that of the body, -1 if the head says nothing.
	Size   int
	Length int
	Close  bool // the client wants no further answer on its connection
	HTML   bool // the client takes HTML
}

// Verdict says what a buffer begins with.
type Verdict int

const (
	// Plain is a whole head of a plain request.
	Plain Verdict = iota
	// More is the beginning of what may be one.
	More
	// Other is anything else.
	Other
	// Ambiguous is a request whose end can be read in two ways.
	Ambiguous
)

// maxLength is the longest body that is looked at; others are not plain.
const maxLength = 1 << 24

// Read reads a head.
func (r *Request) Read(b []byte) Verdict {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		if len(b) > 0 && !upper(b[0]) {
			return Other
		}
		return More
	}
	r.Size, r.Length, r.N, r.Close, r.HTML, r.Host = end+4, -1, 0, false, false, Span{}
	at, ok := r.line(b)
	if !ok {
		return Other
	}
	chunked, lengths := false, 0
	for at < end+2 {
		stop := at + bytes.IndexByte(b[at:end+4], '\n')
		if stop < at+1 || b[stop-1] != '\r' {
			return Other
		}
		colon := nameEnd(b[at : stop-1])
		if colon <= 0 {
			return Other
		}
		name, value := b[at:at+colon], trim(b[at+colon+1:stop-1])
		if !plainValue(value) {
			return Other
		}
		switch kindOf(name) {
		case passed:
			if r.N == maxLines {
				return Other
			}
			r.Lines[r.N] = Span{at, stop + 1}
			r.N++
			if len(name) == 6 && fold(name, "accept") && bytes.Contains(value, []byte("text/html")) {
				r.HTML = true
			}
		case dropped:
		case host:
			if r.Host.To > 0 || !plainHost(value) {
				return Other
			}
			from := at + colon + 1 + bytes.Index(b[at+colon+1:stop-1], value)
			r.Host = Span{from, from + len(value)}
		case connection:
			switch {
			case fold(value, "keep-alive"):
			case fold(value, "close"):
				r.Close = true
			default:
				return Other
			}
		case contentLength:
			n, ok := number(value)
			if lengths++; !ok || lengths > 1 {
				return Other
			}
			r.Length = n
		case transferEncoding:
			chunked = true
		default:
			return Other
		}
		at = stop + 1
	}
	switch {
	case chunked && lengths > 0:
		return Ambiguous
	case chunked || r.Host.To == 0 || r.Length > maxLength:
		return Other
	}
	return Plain
}

// line reads the request line; at is where headers begin.
func (r *Request) line(b []byte) (at int, ok bool) {
	i := 0
	for i < len(b) && upper(b[i]) {
		i++
	}
	if i == 0 || i > 16 || b[i] != ' ' || b[i+1] != '/' || string(b[:i]) == "CONNECT" {
		return 0, false
	}
	r.Method = Span{0, i}
	i++
	from := i
	for pathChar[b[i]] {
		if b[i] == '/' && (b[i+1] == '.' || i == from && b[i+1] == '/') {
			return 0, false
		}
		i++
	}
	r.Path, r.Query = Span{from, i}, Span{i, i}
	if b[i] == '?' {
		for i++; queryChar[b[i]]; i++ {
		}
		r.Query.To = i
	}
	const version = " HTTP/1.1\r\n"
	if len(b) < i+len(version) || string(b[i:i+len(version)]) != version {
		return 0, false
	}
	return i + len(version), true
}

func upper(c byte) bool { return 'A' <= c && c <= 'Z' }

// nameEnd is where the colon after a header's name is; 0: there is no name.
func nameEnd(line []byte) int {
	for i, c := range line {
		if c == ':' {
			return i
		}
		if !tokenChar[c] {
			return 0
		}
	}
	return 0
}

func trim(v []byte) []byte {
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	for len(v) > 0 && (v[len(v)-1] == ' ' || v[len(v)-1] == '\t') {
		v = v[:len(v)-1]
	}
	return v
}

func plainValue(v []byte) bool {
	for _, c := range v {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func plainHost(v []byte) bool {
	for _, c := range v {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_' || c == ':') {
			return false
		}
	}
	return len(v) > 0 && v[len(v)-1] != '.'
}

// number reads a length.
func number(v []byte) (n int, ok bool) {
	if len(v) == 0 || len(v) > 18 {
		return 0, false
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// fold compares without regard to case; lower is in lower case.
func fold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range b {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
