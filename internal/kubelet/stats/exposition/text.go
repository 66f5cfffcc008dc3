package exposition

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Text is a page in Prometheus' text format, version 0.0.4. The zero value is an empty one.
type Text struct {
	page []byte
	name string
}

// ContentType is that of the page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Bytes is the page.
func (t *Text) Bytes() []byte { return t.page }

// The types of families.
const (
	Counter = "counter"
	Gauge   = "gauge"
)

// Family begins a family of samples. Each name may begin one only.
func (t *Text) Family(name, kind, help string) {
	t.name = name
	for _, s := range []string{"# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"} {
		t.page = append(t.page, s...)
	}
}

// Sample adds a sample to the family; labels are of Labels. A zero time is none: the sample is of now.
func (t *Text) Sample(labels string, value float64, at time.Time) {
	t.page = append(t.page, t.name...)
	if labels != "" {
		t.page = append(append(append(t.page, '{'), labels...), '}')
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
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Labels are the names and values of labels, in turns.
func Labels(namesAndValues ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(namesAndValues[i])
		b.WriteString(`="`)
		escaper.WriteString(&b, namesAndValues[i+1]) //nolint:errcheck // a builder does not fail
		b.WriteByte('"')
	}
	return b.String()
}
