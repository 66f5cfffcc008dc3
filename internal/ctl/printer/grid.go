package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/ctl/console"
)

// Layout says how a server's table is shown.
type Layout struct {
	Wide      bool // also show the columns that are normally hidden
	Namespace bool // show the namespace as the first column
	Prefix    string
	NoHeaders bool
}

// Grid prints rows in aligned columns. Later rows, from a watch, use the widths of the first rows as long as they fit.
type Grid struct {
	console *console.Console
	layout  Layout
	columns []metav1.TableColumnDefinition
	widths  []int
	started bool
}

// NewGrid returns a grid without columns; they come with the first table.
func NewGrid(c *console.Console, layout Layout) *Grid { return &Grid{console: c, layout: layout} }

// Started reports whether a line was printed.
func (g *Grid) Started() bool { return g.started }

// gap separates two columns.
const gap = "   "

// Print writes the rows of a table. The first table sets the columns and, if it has rows, prints the header.
func (g *Grid) Print(t *metav1.Table) {
	if len(t.ColumnDefinitions) > 0 {
		g.columns = t.ColumnDefinitions
	}
	if len(t.Rows) == 0 {
		return
	}
	var rows [][]string
	if !g.started && !g.layout.NoHeaders {
		rows = append(rows, g.header())
	}
	for i := range t.Rows {
		rows = append(rows, g.row(&t.Rows[i]))
	}
	g.lines(rows)
}

func (g *Grid) lines(rows [][]string) {
	for _, row := range rows {
		for len(g.widths) < len(row) {
			g.widths = append(g.widths, 0)
		}
		for i, cell := range row {
			g.widths[i] = max(g.widths[i], utf8.RuneCountInString(cell))
		}
	}
	names := g.header()
	for n, row := range rows {
		head := n == 0 && !g.started && !g.layout.NoHeaders
		io.WriteString(g.console.Out, g.line(row, names, head)+"\n")
	}
	g.started = true
}

// line formats a row. Cells are padded before they are coloured, because control sequences have no width.
func (g *Grid) line(row, names []string, head bool) string {
	var b strings.Builder
	for i, cell := range row {
		colour := ""
		switch {
		case head:
			colour = console.Bold
		case i < len(names) && isState(names[i]):
			colour = console.StateColour(cell)
		}
		b.WriteString(g.console.Paint(colour, cell))
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", g.widths[i]-utf8.RuneCountInString(cell)) + gap)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func isState(column string) bool {
	return strings.EqualFold(column, "status") || strings.EqualFold(column, "state") || strings.EqualFold(column, "phase")
}

func (g *Grid) shown(i int) bool {
	return i >= len(g.columns) || g.columns[i].Priority == 0 || g.layout.Wide
}

func (g *Grid) header() []string {
	var row []string
	if g.layout.Namespace {
		row = append(row, "NAMESPACE")
	}
	for i, c := range g.columns {
		if g.shown(i) {
			row = append(row, strings.ToUpper(c.Name))
		}
	}
	return row
}

func (g *Grid) row(r *metav1.TableRow) []string {
	var row []string
	if g.layout.Namespace {
		row = append(row, RowMeta(r).Namespace)
	}
	for i, c := range r.Cells {
		if !g.shown(i) {
			continue
		}
		text := cell(c)
		if i == 0 {
			text = g.layout.Prefix + text
		}
		row = append(row, text)
	}
	return row
}

// RowMeta returns the metadata that the server sends with a row.
func RowMeta(r *metav1.TableRow) metav1.ObjectMeta {
	var obj metav1.PartialObjectMetadata
	if json.Unmarshal(r.Object.Raw, &obj) != nil {
		return metav1.ObjectMeta{}
	}
	return obj.ObjectMeta
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "<none>"
	case string:
		// A cell is one line, even if an event's message has several.
		return strings.ReplaceAll(strings.TrimSpace(v), "\n", " ")
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// Table prints a table of ctl's own in aligned columns.
func Table(c *console.Console, header []string, rows [][]string) {
	g := NewGrid(c, Layout{})
	for _, name := range header {
		g.columns = append(g.columns, metav1.TableColumnDefinition{Name: name})
	}
	g.lines(append([][]string{g.header()}, rows...))
}
