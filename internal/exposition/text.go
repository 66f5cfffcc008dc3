package exposition

import (
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// ContentType is that of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// The types of families.
const (
	Counter = "counter"
	Gauge   = "gauge"
	Untyped = "untyped"
)

// Text is a page. The zero value is an empty one that stays in memory.
type Text struct {
	page  []byte
	name  string
	to    io.Writer // nil: the page is asked for by Bytes
	err   error
	later header
}

type header struct{ name, kind, help string }

// piece is how much of a page is sent at a time.
const piece = 64 << 10

// To returns a page that is sent piece by piece; Flush sends the last one.
func To(w io.Writer) *Text { return &Text{page: make([]byte, 0, piece+piece/8), to: w} }

// Bytes is the page, if it was not sent.
func (t *Text) Bytes() []byte { return t.page }

// Flush sends what was not yet, and returns the first error of sending.
func (t *Text) Flush() error {
	if t.to != nil && t.err == nil && len(t.page) > 0 {
		_, t.err = t.to.Write(t.page)
	}
	if t.to != nil {
		t.page = t.page[:0]
	}
	return t.err
}

// Family begins a family of samples. Each name may begin one only.
func (t *Text) Family(name, kind, help string) {
	t.name, t.later = name, header{}
	for _, s := range []string{"# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"} {
		t.page = append(t.page, s...)
	}
}

// Maybe is Family for one that may have no samples: it then leaves no trace.
func (t *Text) Maybe(name, kind, help string) { t.name, t.later = name, header{name, kind, help} }

// Sample adds a sample to the family; labels are of Labels, and more are further names and values, in turns. A zero time
// is none: the sample is of now.
func (t *Text) Sample(labels string, value float64, at time.Time, more ...string) {
	if t.later.name != "" {
		t.Family(t.later.name, t.later.kind, t.later.help)
	}
	t.page = append(t.page, t.name...)
	if labels != "" || len(more) > 0 {
		t.page = append(append(t.page, '{'), labels...)
		for i := 0; i+1 < len(more); i += 2 {
			if labels != "" || i > 0 {
				t.page = append(t.page, ',')
			}
			t.page = appendLabel(t.page, more[i], more[i+1])
		}
		t.page = append(t.page, '}')
	}
	t.page = append(t.page, ' ')
	if value == math.Trunc(value) && math.Abs(value) < 1<<53 { // most are counts of bytes
		t.page = strconv.AppendInt(t.page, int64(value), 10)
	} else {
		t.page = strconv.AppendFloat(t.page, value, 'g', -1, 64)
	}
	if !at.IsZero() {
		t.page = strconv.AppendInt(append(t.page, ' '), at.UnixMilli(), 10)
	}
	t.page = append(t.page, '\n')
	if t.to != nil && len(t.page) >= piece {
		t.Flush() //nolint:errcheck // the last Flush returns it
	}
}

// Labels are the names and values of labels, in turns.
func Labels(namesAndValues ...string) string {
	var b []byte
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLabel(b, namesAndValues[i], namesAndValues[i+1])
	}
	return string(b)
}

// appendLabel escapes what the format asks for. What is not UTF-8, which no reader takes, is replaced.
func appendLabel(b []byte, name, value string) []byte {
	b = append(append(b, name...), '=', '"')
	if plain(value) {
		return append(append(b, value...), '"')
	}
	for _, r := range strings.ToValidUTF8(value, "\uFFFD") {
		switch r {
		case '\\', '"':
			b = append(b, '\\', byte(r))
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			return false
		}
	}
	return true
}
