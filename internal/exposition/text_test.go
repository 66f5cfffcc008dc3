package exposition_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"minik8s/internal/exposition"
)

func TestText(t *testing.T) {
	p := &exposition.Text{}
	p.Family("a_total", exposition.Counter, "Of a.")
	p.Sample("", 3, time.UnixMilli(12))
	p.Maybe("never", exposition.Gauge, "Of nothing.")
	p.Maybe("b", exposition.Gauge, "Of b.")
	p.Sample(exposition.Labels("x", "plain", "y", "a\"b\\c\nd"), 0.25, time.Time{})
	p.Sample("", -1, time.Time{}, "x", "ü", "y", "bad\xff")
	p.Sample(exposition.Labels("x", "1"), 1e300, time.Time{}, "y", "2")
	const want = "# HELP a_total Of a.\n# TYPE a_total counter\na_total 3 12\n" +
		"# HELP b Of b.\n# TYPE b gauge\n" + `b{x="plain",y="a\"b\\c\nd"} 0.25` + "\n" + `b{x="ü",y="bad` + "\uFFFD" + `"} -1` + "\n" + `b{x="1",y="2"} 1e+300` + "\n"
	if got := string(p.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A page that is sent is the same as one that is kept, and nothing of it is kept.
func TestSentPage(t *testing.T) {
	var out strings.Builder
	sent, kept := exposition.To(&out), &exposition.Text{}
	for _, p := range []*exposition.Text{sent, kept} {
		p.Family("a", exposition.Gauge, "Of a.")
		for i := range 20000 {
			p.Sample("", float64(i), time.Time{}, "x", strings.Repeat("y", i%50))
		}
	}
	if err := sent.Flush(); err != nil || out.String() != string(kept.Bytes()) || len(sent.Bytes()) != 0 {
		t.Errorf("%v; %d bytes were sent, %d are to be, %d are left", err, out.Len(), len(kept.Bytes()), len(sent.Bytes()))
	}
	gone := exposition.To(away{})
	for range 20000 {
		gone.Sample("", 1, time.Time{}, "x", "y")
	}
	if err := gone.Flush(); !errors.Is(err, errAway) {
		t.Error(err)
	}
}

var errAway = errors.New("away")

type away struct{}

func (away) Write([]byte) (int, error) { return 0, errAway }
