package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDraw(t *testing.T) {
	p := Picture{Title: `a <title> & "more"`, Marks: []Mark{{5 * time.Second, "half"}}, Panels: []Panel{
		{Title: "steps", Lines: []Line{{Name: "wanted", Steps: true, Points: []Point{{0, 1}, {5 * time.Second, 4}, {10 * time.Second, 2}}}}},
		{Title: "a course", Unit: "%", Lines: []Line{{Name: "used", Points: []Point{{0, 0}, {10 * time.Second, 100}}}, {Name: "nothing"}}},
	}}
	var b strings.Builder
	if err := p.Draw(&b); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	// Half of the time is half of the width, and the largest value at the upper edge.
	for _, want := range []string{"a &lt;title&gt; &amp;", `d="M64.0 169.5H452.0V72.0H840.0V137.0"`, `d="M64.0 378.0L840.0 248.0"`, ">100%<", ">10 s<",
		`x1="452.0" y1="34"`, `d=""`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %s in\n%s", want, b.String())
		}
	}
}

func TestTicks(t *testing.T) {
	for most, want := range map[float64][]float64{1: {0, .5, 1}, 4: {0, 1, 2, 3, 4}, 6: {0, 2, 4, 6}, 310: {0, 100, 200, 300}} {
		if got := ticks(most, 4); !slices.Equal(got, want) {
			t.Errorf("%g: %v, want %v", most, got, want)
		}
	}
}
