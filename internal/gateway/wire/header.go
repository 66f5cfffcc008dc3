package wire

// kind is what a header is to somebody between client and server.
type kind int

const (
	passed  kind = iota // for the other end
	dropped             // for the next hop only, or said anew
	host
	connection
	contentLength
	transferEncoding
	special // changes what follows
)

// kindOf is what a header of a request is.
func kindOf(name []byte) kind {
	switch len(name) {
	case 2:
		if fold(name, "te") {
			return dropped
		}
	case 4:
		if fold(name, "host") {
			return host
		}
	case 6:
		if fold(name, "expect") {
			return special
		}
	case 7:
		if fold(name, "upgrade") || fold(name, "trailer") {
			return special
		}
	case 8:
		if fold(name, "cdn-loop") {
			return special
		}
	case 9:
		if fold(name, "forwarded") || foldDashed(name, "x-real-ip") {
			return dropped
		}
	case 10:
		if fold(name, "connection") {
			return connection
		}
		if fold(name, "keep-alive") {
			return dropped
		}
	case 14:
		if fold(name, "content-length") {
			return contentLength
		}
		if fold(name, "http2-settings") {
			return special
		}
	case 16:
		if fold(name, "proxy-connection") {
			return dropped
		}
	case 17:
		if fold(name, "transfer-encoding") {
			return transferEncoding
		}
	case 18:
		if fold(name, "proxy-authenticate") {
			return dropped
		}
	case 19:
		if fold(name, "proxy-authorization") {
			return dropped
		}
	}
	if len(name) > 12 && foldDashed(name[:12], "x-forwarded-") {
		return dropped
	}
	return passed
}

// foldDashed is fold where an underscore is a dash, as many programs behind take it.
func foldDashed(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i := range name {
		if !fold(name[i:i+1], lower[i:i+1]) && (name[i] != '_' || lower[i] != '-') {
			return false
		}
	}
	return true
}

// kindOfAnswer is what a header of an answer is. Trailers that it announces are passed on.
func kindOfAnswer(name []byte) kind {
	switch k := kindOf(name); k {
	case connection, contentLength, transferEncoding:
		return k
	case dropped, special:
		if name[0]|0x20 == 'x' || fold(name, "trailer") || fold(name, "forwarded") || fold(name, "expect") {
			return passed
		}
		return dropped
	}
	return passed
}

func table(chars string) (t [256]bool) {
	for c := range 256 {
		t[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	}
	for i := range len(chars) {
		t[chars[i]] = true
	}
	return t
}

var (
	tokenChar = table("!#$%&'*+-.^_`|~")
	pathChar  = table("-._~!$&'()*+,;=:@/")
	queryChar = table("-._~!$&'()*+,;=:@/?%[]{}|^`\"<>\\")
)
