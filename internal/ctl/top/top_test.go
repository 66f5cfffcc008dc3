package top

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

func rowsOf(names ...string) []row {
	var out []row
	for i, n := range names {
		out = append(out, row{namespace: "default", pod: n, point: point{float64(i) / 10, float64(len(names)-i) * (1 << 20)}})
	}
	return out
}

func podsOf(rows []row) string {
	var names []string
	for _, r := range rows {
		names = append(names, r.pod)
	}
	return strings.Join(names, " ")
}

func TestOrder(t *testing.T) {
	rows := rowsOf("b", "c", "a")
	for by, want := range map[string]string{ByCPU: "a c b", ByMemory: "b c a", ByName: "a b c"} {
		if order(rows, by); podsOf(rows) != want {
			t.Errorf("by %s: %s, want %s", by, podsOf(rows), want)
		}
	}
	same := []row{{pod: "b"}, {pod: "a"}}
	if order(same, ByCPU); podsOf(same) != "a b" {
		t.Error("what uses as much is not in the order of names: ", podsOf(same))
	}
}

func TestCourses(t *testing.T) {
	known := courses{}
	var rows []row
	for i := range 3 * remembered {
		rows = []row{{pod: "a", point: point{cpu: float64(i)}}}
		known = known.add(rows)
	}
	if c := rows[0].course; len(c) != remembered || c[remembered-1].cpu != 3*remembered-1 || c[0].cpu != 2*remembered {
		t.Errorf("%d points, from %v to %v", len(c), c[0], c[len(c)-1])
	}
	if known = known.add([]row{{pod: "b"}}); len(known) != 1 {
		t.Error("what has ended is remembered")
	}
}

func TestSpark(t *testing.T) {
	cpu := func(p point) float64 { return p.cpu }
	course := []point{{cpu: 0}, {cpu: 0.5}, {cpu: 1}, {cpu: 2}}
	for _, c := range []struct {
		width int
		whole float64
		want  string
	}{{4, 2, "▁▃▅█"}, {6, 2, "  ▁▃▅█"}, {2, 2, "▃█"}, {3, 2, " ▃█"}, {4, 0, "▁▃▅█"}, {4, 16, "▁▁▁▂"}} {
		if got := spark(course, c.width, c.whole, cpu); got != c.want {
			t.Errorf("width %d, whole %v: %q, want %q", c.width, c.whole, got, c.want)
		}
	}
	if got := spark([]point{{}, {}}, 2, 0, cpu); got != "▁▁" {
		t.Errorf("nothing at all: %q", got)
	}
}

func TestFrameFitsTheScreen(t *testing.T) {
	r := &Request{View: Pods, Sort: ByCPU, Interval: 2 * time.Second}
	names := []string{}
	for i := range 40 {
		names = append(names, strings.Repeat("x", i+1))
	}
	for _, size := range [][2]int{{80, 24}, {20, 5}, {300, 100}, {1, 3}} {
		got := frame(r, rowsOf(names...), "no answer", size[0], size[1])
		if len(got) > size[1] || slices.ContainsFunc(got, func(l string) bool { return len([]rune(l)) > size[0] }) {
			t.Errorf("%v: %d lines\n%s", size, len(got), strings.Join(got, "\n"))
		}
	}
	if got := frame(r, rowsOf(names...), "", 80, 24); got[23] != "and 20 more" {
		t.Errorf("%q", got[23])
	}
}

func TestTable(t *testing.T) {
	node := []row{{node: "n1", point: point{0.0305, 512 << 20}, whole: point{2, 1 << 30}}}
	got := lines(table(Nodes, node, true, 0))
	want := []string{"NAME   CPU(cores)   CPU(%)   MEMORY(bytes)   MEMORY(%)", "n1     31m          1%       512Mi           50%"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	pods := lines(table(Containers, []row{{namespace: "a", pod: "p", container: "c", point: point{1, 1 << 20}, restarts: 2}}, true, 0))
	if pods[1] != "a           p     c           1000m        1Mi             2" {
		t.Errorf("%q", pods)
	}
}

func TestKeys(t *testing.T) {
	r := &Request{View: Nodes, Names: []string{"n1"}, Sort: ByCPU}
	for _, c := range []struct {
		key     byte
		view    View
		sort    string
		changed bool
	}{{'p', Pods, ByCPU, true}, {'p', Pods, ByCPU, false}, {'m', Pods, ByMemory, false}, {'t', Containers, ByMemory, true},
		{'a', Containers, ByName, false}, {'x', Containers, ByName, false}, {'n', Nodes, ByName, true}} {
		if view, changed := r.press(c.key); view != c.view || changed != c.changed || r.Sort != c.sort || r.Names != nil {
			t.Errorf("%c: %v, %v, by %s", c.key, view, changed, r.Sort)
		}
	}
	for _, key := range []byte{'q', 3, 4} {
		if view, _ := r.press(key); view != "" {
			t.Errorf("%q does not end it", key)
		}
	}
}

// silent is an API server that accepts a question and never answers.
type silent struct{ session.Server }

func (silent) Do(ctx context.Context, _, _ string, _ url.Values, _ string, _ io.Reader) (*http.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) At() string { return "https://192.0.2.1:6443" }

// Once it ends with a word on who does not answer, and live the word is on the screen, and the keys still count.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session.Session{Console: console.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }), API: silent{}}
		began := time.Now()
		err := Run(t.Context(), s, Request{View: Nodes, Sort: ByCPU, Once: true})
		if exit.CodeOf(err) != exit.Unreachable || time.Since(began) != patience ||
			err.Error() != "the API server at https://192.0.2.1:6443 has accepted the question, and has not answered it in 10s" {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		keys, screen := make(chan byte), &strings.Builder{}
		ended := make(chan error)
		go func() {
			ended <- live(t.Context(), s, &Request{View: Pods, Sort: ByCPU, Interval: time.Second}, screen, keys, func() (int, int) { return 120, 10 })
		}()
		time.Sleep(patience + time.Millisecond)
		synctest.Wait()
		keys <- 'q'
		if err := <-ended; err != nil || !strings.Contains(screen.String(), "has not answered it in 10s") {
			t.Errorf("%v; the screen is %q", err, screen.String())
		}
		began = time.Now()
		go func() {
			ended <- live(t.Context(), s, &Request{View: Pods, Sort: ByCPU, Interval: time.Second}, screen, keys, func() (int, int) { return 120, 10 })
		}()
		keys <- 'n'
		keys <- 3
		if err := <-ended; err != nil || time.Since(began) != 0 {
			t.Errorf("%v; keys are taken after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Run(ctx, s, Request{View: Nodes, Once: true}); err == nil || exit.CodeOf(err) == exit.Unreachable {
			t.Errorf("the user gave up: %v", err)
		}
	})
}
