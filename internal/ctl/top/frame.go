package top

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is rows as text, the header first. Each cell of course has so many signs; 0: there is none.
func table(view View, rows []row, namespaces bool, course int) [][]string {
	head := []string{"NAME"}
	switch view {
	case Containers:
		head = []string{"POD", "CONTAINER"}
	case Pods, Nodes:
	}
	if namespaces && view != Nodes {
		head = append([]string{"NAMESPACE"}, head...)
	}
	head = append(head, "CPU(cores)")
	if view == Nodes {
		head = append(head, "CPU(%)")
	}
	if course > 0 {
		head = append(head, "")
	}
	head = append(head, "MEMORY(bytes)")
	if view == Nodes {
		head = append(head, "MEMORY(%)")
	}
	if course > 0 {
		head = append(head, "")
	}
	if view != Nodes {
		head = append(head, "RESTARTS")
	}
	out := [][]string{head}
	for i := range rows {
		r := &rows[i]
		var line []string
		switch view {
		case Nodes:
			line = []string{r.node}
		case Pods:
			line = []string{r.pod}
		case Containers:
			line = []string{r.pod, r.container}
		}
		if namespaces && view != Nodes {
			line = append([]string{r.namespace}, line...)
		}
		line = append(line, fmt.Sprintf("%dm", int64(math.Ceil(r.cpu*1000))))
		if view == Nodes {
			line = append(line, percent(r.cpu, r.whole.cpu))
		}
		if course > 0 {
			line = append(line, spark(r.course, course, r.whole.cpu, func(p point) float64 { return p.cpu }))
		}
		line = append(line, bytes(r.memory))
		if view == Nodes {
			line = append(line, percent(r.memory, r.whole.memory))
		}
		if course > 0 {
			line = append(line, spark(r.course, course, r.whole.memory, func(p point) float64 { return p.memory }))
		}
		if view != Nodes {
			line = append(line, strconv.Itoa(r.restarts))
		}
		out = append(out, line)
	}
	return out
}

// bytes is a size as kubectl shows it, but that less than a mebibyte is not nothing.
func bytes(n float64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%dKi", int64(n/(1<<10)))
	}
	return fmt.Sprintf("%dMi", int64(n/(1<<20)))
}

func percent(part, whole float64) string {
	if whole <= 0 {
		return "<unknown>"
	}
	return fmt.Sprintf("%d%%", int64(part/whole*100))
}

var levels = []rune("▁▂▃▄▅▆▇█")

// spark draws all points, as parts of whole, or of the largest one where whole is not known. Where they are more than there is room
// for, each sign is the largest of some.
func spark(course []point, width int, whole float64, of func(point) float64) string {
	each := max(1, (len(course)+width-1)/width)
	var values []float64
	for some := range slices.Chunk(course, each) {
		most := 0.0
		for _, p := range some {
			most = max(most, of(p))
		}
		values = append(values, most)
		whole = max(whole, most)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(values)))
	for _, v := range values {
		level := 0
		if whole > 0 {
			level = min(int(v/whole*float64(len(levels))), len(levels)-1)
		}
		b.WriteRune(levels[level])
	}
	return b.String()
}

// lines aligns the cells of a table.
func lines(table [][]string) []string {
	var widths []int
	for _, row := range table {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := make([]string, 0, len(table))
	for _, row := range table {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3))
			}
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

const (
	minCourse, maxCourse = 8, 60
	fixed                = 80 // what the other columns take, roughly
)

// frame is the whole screen, of so many columns and lines.
func frame(r *Request, rows []row, problem string, width, height int) []string {
	course := min(max((width-fixed)/2, minCourse), maxCourse)
	out := []string{fmt.Sprintf("%s by %s, every %v   n nodes  p pods  t containers   c cpu  m memory  a name   q quit", r.View, r.Sort, r.Interval), problem}
	out = append(out, lines(table(r.View, rows, r.AllNamespaces, course))...)
	if len(out) > height {
		hidden := len(out) - height + 1
		out = append(out[:height-1], fmt.Sprintf("and %d more", hidden))
	}
	for i, line := range out {
		if signs := []rune(line); len(signs) > width {
			out[i] = string(signs[:width])
		}
	}
	return out
}
