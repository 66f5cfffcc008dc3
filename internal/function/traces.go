package function

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"regexp"
)

// headerTrace is W3C's (https://www.w3.org/TR/trace-context/): version, the trace's id, the caller's span, flags.
const headerTrace = "Traceparent"

var traces = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

// traceOf is the trace that a caller has begun, or a new one.
func traceOf(h http.Header) string { return traceFrom(h.Get(headerTrace)) }

func traceFrom(parent string) string {
	const none = "00000000000000000000000000000000"
	if m := traces.FindStringSubmatch(parent); m != nil && m[1] != none && m[2] != none[:16] {
		return parent
	}
	var b [24]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return "00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-01"
}

// traceID is the id in a trace.
func traceID(parent string) string {
	if m := traces.FindStringSubmatch(parent); m != nil {
		return m[1]
	}
	return ""
}
