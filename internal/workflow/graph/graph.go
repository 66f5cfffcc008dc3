package graph

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/workflow/asl"
)

// Way is from one state to another; To is empty at the end.
type Way struct{ From, To string }

// Taken is what a run has done.
type Taken struct {
	States map[string]int // how often each state has been left
	Ways   map[Way]int
	Failed map[string]bool // where the run, or a branch, has ended with an error
	Now    map[string]bool // where it is
}

// TakenBy is what a run's steps say, in whatever order they come. What happened after what follows from their places, and from no clock: masters
// have their own. What is at no place is passed over.
func TakenBy(m *asl.Machine, steps []*minik8s.WorkflowStep, running bool) *Taken {
	t := &Taken{States: map[string]int{}, Ways: map[Way]int{}, Failed: map[string]bool{}, Now: map[string]bool{}}
	last := map[string]*minik8s.WorkflowStepSpec{}
	newest := map[string][]step{} // of each state those after which it was left no more: several, if they are of branches side by side
	for _, s := range inOrder(steps) {
		x := s.spec
		of := newest[x.State]
		for len(of) > 0 && of[len(of)-1].before(s) { // those before it are last: what is beside one of them is beside all that came earlier
			of = of[:len(of)-1]
		}
		newest[x.State] = append(of, s)
		if before := last[x.Branch]; before == nil || before.Number < x.Number {
			last[x.Branch] = x
		}
		switch x.Event {
		case minik8s.StepRetried:
		case minik8s.StepFailed:
			t.States[x.State]++
		default:
			t.States[x.State]++
			t.Ways[Way{x.State, x.Next}]++
		}
	}
	for state, of := range newest {
		t.Failed[state] = slices.ContainsFunc(of, func(s step) bool { return s.spec.Event == minik8s.StepFailed })
	}
	if !running {
		return t
	}
	if last[""] == nil {
		t.Now[m.StartAt] = true
	}
	for _, x := range last {
		if x.Next != "" && goesOn(x.Branch, last) {
			t.Now[x.Next] = true
		}
	}
	return t
}

// step is a step and its place: for each branch that it is in the number of the step of the state around it, and the branch's own number, and then the
// step's number in the innermost one. Step 3 of branch 2-0.4-1 is at 2 0 4 1 3.
type step struct {
	spec *minik8s.WorkflowStepSpec
	at   []int64
}

// placed says where a step is, or that it is at no place.
func placed(s *minik8s.WorkflowStepSpec) (step, bool) {
	out := step{spec: s}
	for branch := s.Branch; branch != ""; {
		var one string
		one, branch, _ = strings.Cut(branch, ".")
		number, own, _ := strings.Cut(one, "-")
		n, err := strconv.ParseInt(number, 10, 64)
		i, err2 := strconv.ParseInt(own, 10, 64)
		if err != nil || err2 != nil {
			return step{}, false
		}
		out.at = append(out.at, n, i)
	}
	out.at = append(out.at, s.Number)
	return out, true
}

// inOrder are steps by their places: what was made earlier comes earlier, and branches side by side come one after the other.
func inOrder(steps []*minik8s.WorkflowStep) (out []step) {
	for _, s := range steps {
		if x, ok := placed(&s.Spec); ok {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b step) int { return slices.Compare(a.at, b.at) })
	return out
}

// before reports whether a step was made before another one of the same state. Where they part by the numbers of steps it was, and where they
// part by the numbers of branches they are side by side.
func (s step) before(o step) bool {
	for i := range min(len(s.at), len(o.at)) {
		if s.at[i] != o.at[i] {
			return i%2 == 0 && s.at[i] < o.at[i]
		}
	}
	return false
}

// goesOn reports whether a branch may still take steps: no state around it has been left. What an error of another branch has ended stays as it was
// when a state is tried again.
func goesOn(branch string, last map[string]*minik8s.WorkflowStepSpec) bool {
	for branch != "" {
		at := branch[:max(0, strings.LastIndexByte(branch, '-'))]
		around, number := "", at
		if i := strings.LastIndexByte(at, '.'); i >= 0 {
			around, number = at[:i], at[i+1:]
		}
		if n, err := strconv.ParseInt(number, 10, 64); err != nil || last[around] != nil && last[around].Number >= n {
			return false
		}
		branch = around
	}
	return true
}

// mark is a state's sign.
func (t *Taken) mark(name string) string {
	switch {
	case t == nil:
		return "o"
	case t.Now[name]:
		return ">"
	case t.Failed[name]:
		return "x"
	case t.States[name] > 0:
		return "*"
	}
	return "o"
}

// Text draws for a terminal. Without t nothing is marked.
func Text(m *asl.Machine, t *Taken) string {
	var b strings.Builder
	write(&b, m, t, "")
	if t != nil {
		b.WriteString("\n* done   > now   x failed   o not reached   ==> taken   --> not taken\n")
	}
	return b.String()
}

func write(b *strings.Builder, m *asl.Machine, t *Taken, indent string) {
	for _, name := range m.Order {
		s := m.States[name]
		fmt.Fprintf(b, "%s%s %s  [%s]", indent, t.mark(name), name, kind(s))
		if t != nil && t.States[name] > 1 {
			fmt.Fprintf(b, "  %d times", t.States[name])
		}
		if name == m.StartAt && len(m.Order) > 1 {
			b.WriteString("  (start)")
		}
		b.WriteString("\n")
		for i, branch := range s.Branches {
			what := fmt.Sprintf("branch %d", i)
			if s.Type == asl.Map {
				what = "each item"
			}
			fmt.Fprintf(b, "%s    | %s:\n", indent, what)
			write(b, branch, t, indent+"    |   ")
		}
		for _, way := range s.Targets() {
			arrow, label, to := "-->", "", way.To
			if t != nil && t.Ways[Way{name, way.To}] > 0 {
				arrow = "==>"
			}
			if way.Label != "" {
				label = way.Label + " "
			}
			if to == "" {
				to = "(end)"
			}
			fmt.Fprintf(b, "%s    %s%s %s\n", indent, label, arrow, to)
		}
	}
}

func kind(s *asl.State) string {
	if s.Function != "" {
		return s.Type + " " + s.Function
	}
	return s.Type
}

// box is a state in the SVG.
type box struct {
	state *asl.State
	x, y  int
}

// Sizes of the SVG, in pixels.
const (
	boxWidth, boxHeight = 190, 44
	gapX, gapY          = 40, 56
	margin              = 24
)

// SVG draws a picture: the states in rows, by how far they are from the start; machines inside a state below it, by dashed lines.
func SVG(m *asl.Machine, t *Taken) string {
	boxes, width, height := place(m)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	b.WriteString(`<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>` + "\n")
	m.Walk(func(s *asl.State) {
		from := boxes[s.Name]
		for i, way := range s.Targets() {
			to, ok := boxes[way.To]
			if !ok {
				continue
			}
			color, w := "#999", 1
			if t != nil && t.Ways[Way{s.Name, way.To}] > 0 {
				color, w = "#0a7", 3
			}
			edge(&b, from, to, i, color, w, "", way.Label)
		}
		for i, branch := range s.Branches {
			if to, ok := boxes[branch.StartAt]; ok {
				edge(&b, from, to, i, "#68c", 1, ` stroke-dasharray="4 3"`, "")
			}
		}
	})
	m.Walk(func(s *asl.State) {
		at := boxes[s.Name]
		fill, stroke := "#fff", "#999"
		switch t.mark(s.Name) {
		case "*":
			fill, stroke = "#dfd", "#0a7"
		case "x":
			fill, stroke = "#fdd", "#c33"
		case ">":
			fill, stroke = "#ffd", "#c90"
		}
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n", at.x, at.y, boxWidth, boxHeight, fill, stroke)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" font-weight="bold">%s</text>`+"\n", at.x+boxWidth/2, at.y+18, escape(s.Name, 26))
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n", at.x+boxWidth/2, at.y+34, escape(kind(s), 30))
	})
	b.WriteString("</svg>\n")
	return b.String()
}

// edge draws a way; one that leads back goes around the side.
func edge(b *strings.Builder, from, to box, nth int, color string, width int, more, label string) {
	x1, y1, x2, y2 := from.x+boxWidth/2+nth*10, from.y+boxHeight, to.x+boxWidth/2, to.y
	bend := (y2 - y1) / 2
	path := fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, y1+bend, x2, y2-bend, x2, y2)
	tx, ty := (x1+x2)/2, (y1+y2)/2
	if to.y <= from.y {
		x1, y1, x2, y2 = from.x+boxWidth, from.y+boxHeight/2, to.x+boxWidth, to.y+boxHeight/2
		side := max(x1, x2) + gapX - 8
		path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, side, y1, side, y2, x2, y2)
		tx, ty = side, (y1+y2)/2
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="%d" marker-end="url(#a)"%s/>`+"\n", path, color, width, more)
	if label != "" {
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" font-size="10" fill="#333" stroke="#fff" stroke-width="3" paint-order="stroke">%s</text>`+"\n", tx, ty, escape(label, 32))
	}
}

func escape(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return html.EscapeString(text)
}

// place gives each state its row and its place in it.
func place(m *asl.Machine) (boxes map[string]box, width, height int) {
	boxes = map[string]box{}
	depth := map[string]int{}
	var rows []int
	var lay func(m *asl.Machine, first int)
	lay = func(m *asl.Machine, first int) {
		depth[m.StartAt] = first
		for _, name := range m.Order {
			s, row := m.States[name], depth[name]
			for len(rows) <= row {
				rows = append(rows, 0)
			}
			boxes[name] = box{s, margin + rows[row]*(boxWidth+gapX), margin + row*(boxHeight+gapY)}
			rows[row]++
			for _, branch := range s.Branches {
				lay(branch, row+1)
			}
			for _, way := range s.Targets() {
				if _, seen := depth[way.To]; way.To != "" && !seen {
					depth[way.To] = row + 1 + inside(s)
				}
			}
		}
	}
	lay(m, 0)
	most := 1
	for _, n := range rows {
		most = max(most, n)
	}
	return boxes, 2*margin + most*(boxWidth+gapX), 2*margin + len(rows)*(boxHeight+gapY)
}

// inside is how many rows the machines of a state take.
func inside(s *asl.State) int {
	most := 0
	for _, branch := range s.Branches {
		rows := 0
		for _, name := range branch.Order {
			rows += 1 + inside(branch.States[name])
		}
		most = max(most, rows)
	}
	return most
}
