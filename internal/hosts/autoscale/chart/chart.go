package chart

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Point is a value at a time since the beginning.
type Point struct {
	At    time.Duration
	Value float64
}

// Line is a course.
type Line struct {
	Name   string
	Points []Point // in the order of time
	// Steps: a value stays until the next one. Dashed is for what is aimed at.
	Steps, Dashed bool
}

// Panel is a diagram. Its values begin at 0.
type Panel struct {
	Title, Unit string
	Lines       []Line
}

// Mark is a moment with a name.
type Mark struct {
	At   time.Duration
	Name string
}

// Picture is all of it.
type Picture struct {
	Title  string
	Panels []Panel
	Marks  []Mark
}

// Sizes in pixels.
const (
	width  = 860
	left   = 64
	right  = 20
	top    = 72  // below the title and the names of the marks
	height = 130 // of a panel
	gap    = 46
	bottom = 36
)

// style is for light and dark ground, by what the reader prefers; the ground is drawn, so that the two always fit, and around text.
// The colours can be told apart by those who see fewer.
const style = `.ground{fill:#fff}text{font:12px sans-serif;fill:#57606a;stroke:#fff;stroke-width:4px;paint-order:stroke}` +
	`.title{font-size:16px;font-weight:bold}.grid{stroke:#8b949e;stroke-opacity:.25}.mark{stroke:#8b949e;stroke-dasharray:2 3}` +
	`.line{fill:none;stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:6 4;stroke-width:1.5}` +
	`.c0{stroke:#0969da}.c1{stroke:#bc4c00}.c2{stroke:#1a7f6b}.c3{stroke:#8250df}` +
	`.t0{fill:#0969da}.t1{fill:#bc4c00}.t2{fill:#1a7f6b}.t3{fill:#8250df}` +
	`@media(prefers-color-scheme:dark){.ground{fill:#0d1117}text{fill:#9da7b3;stroke:#0d1117}` +
	`.c0{stroke:#58a6ff}.c1{stroke:#f0883e}.c2{stroke:#3fb99d}.c3{stroke:#bc8cff}` +
	`.t0{fill:#58a6ff}.t1{fill:#f0883e}.t2{fill:#3fb99d}.t3{fill:#bc8cff}}`

// colours is how many there are; more lines than that begin again.
const colours = 4

// Draw writes the picture. The error is the writer's.
func (p *Picture) Draw(w io.Writer) error {
	end := time.Second
	for _, panel := range p.Panels {
		for _, l := range panel.Lines {
			if n := len(l.Points); n > 0 {
				end = max(end, l.Points[n-1].At)
			}
		}
	}
	d := &drawing{end: end}
	tall := top + len(p.Panels)*(height+gap) - gap + bottom
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`, width, tall, width, tall)
	d.f(`<title>%s</title><style>%s</style>`, text(p.Title), style)
	d.f(`<rect class="ground" width="100%%" height="100%%"/>`)
	d.f(`<text class="title" x="%d" y="24">%s</text>`, left, text(p.Title))
	foot := tall - bottom
	for _, m := range p.Marks {
		d.f(`<line class="mark" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, d.x(m.At), top-38, d.x(m.At), foot)
		d.f(`<text x="%.1f" y="%d">%s</text>`, d.x(m.At)+4, top-28, text(m.Name))
	}
	for i := range p.Panels {
		d.panel(&p.Panels[i], top+i*(height+gap))
	}
	for _, at := range ticks(end.Seconds(), 8) {
		d.f(`<text x="%.1f" y="%d" text-anchor="middle">%g s</text>`, d.x(time.Duration(at*float64(time.Second))), foot+18, at)
	}
	d.f(`</svg>`)
	_, err := io.WriteString(w, d.String())
	return err
}

// drawing is a picture that grows.
type drawing struct {
	strings.Builder
	end time.Duration
}

func (d *drawing) f(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *drawing) x(at time.Duration) float64 {
	return left + (width-left-right)*at.Seconds()/d.end.Seconds()
}

// panel draws one whose upper edge is at y.
func (d *drawing) panel(p *Panel, y int) {
	most := 1.0
	for _, l := range p.Lines {
		for _, pt := range l.Points {
			most = max(most, pt.Value)
		}
	}
	grid := ticks(most, 4)
	most = max(most, grid[len(grid)-1])
	at := func(v float64) float64 { return float64(y) + height*(1-v/most) }
	d.f(`<text x="%d" y="%d">%s</text>`, left, y-8, text(p.Title))
	for _, v := range grid {
		d.f(`<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, left, at(v), width-right, at(v))
		d.f(`<text x="%d" y="%.1f" text-anchor="end">%g%s</text>`, left-8, at(v)+4, v, text(p.Unit))
	}
	names := width - right
	for i := len(p.Lines) - 1; i >= 0; i-- {
		l := &p.Lines[i]
		class := fmt.Sprintf("line c%d", i%colours)
		if l.Dashed {
			class += " dashed"
		}
		d.f(`<path class="%s" d="%s"/>`, class, path(l, d.x, at))
		d.f(`<text class="t%d" x="%d" y="%d" text-anchor="end">%s</text>`, i%colours, names, y-8, text(l.Name))
		names -= 16 + 7*len(l.Name)
	}
}

// path is a line in SVG's words.
func path(l *Line, x func(time.Duration) float64, y func(float64) float64) string {
	var b strings.Builder
	for i, p := range l.Points {
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%.1f %.1f", x(p.At), y(p.Value))
		case l.Steps:
			fmt.Fprintf(&b, "H%.1fV%.1f", x(p.At), y(p.Value))
		default:
			fmt.Fprintf(&b, "L%.1f %.1f", x(p.At), y(p.Value))
		}
	}
	return b.String()
}

// ticks are round numbers from 0 to most, about n of them.
func ticks(most float64, n int) []float64 {
	raw := most / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * unit
	for _, s := range []float64{1, 2, 5} {
		if s*unit >= raw {
			step = s * unit
			break
		}
	}
	var out []float64
	for i := 0; float64(i)*step <= most; i++ {
		out = append(out, float64(i)*step)
	}
	return out
}

func text(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) //nolint:errcheck // a Builder takes all
	return b.String()
}
