package describe

import (
	"fmt"
	"sort"
	"strings"
)

// sheet is a page of "Name:   value" lines.
type sheet struct {
	strings.Builder
	indent string
}

// nameWidth is the column in which the values begin.
const nameWidth = 18

// line writes a line as it is.
func (s *sheet) line(format string, args ...any) {
	s.WriteString(s.indent)
	fmt.Fprintf(&s.Builder, format, args...)
	s.WriteByte('\n')
}

// field writes a name and its value, or <none>.
func (s *sheet) field(name, value string) {
	if value == "" {
		value = "<none>"
	}
	s.line("%-*s%s", nameWidth-len(s.indent), name+":", value)
}

// pairs writes a map, one pair per line.
func (s *sheet) pairs(name string, m map[string]string) {
	var lines []string
	for k, v := range m {
		lines = append(lines, k+"="+v)
	}
	sort.Strings(lines)
	s.lines(name, lines)
}

// lines writes several values under one name.
func (s *sheet) lines(name string, values []string) {
	if len(values) == 0 {
		s.field(name, "")
		return
	}
	for i, v := range values {
		if i > 0 {
			s.line("%-*s%s", nameWidth-len(s.indent), "", v)
		} else {
			s.field(name, v)
		}
	}
}

// block writes several lines with an indent.
func (s *sheet) block(indent, text string) {
	for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		s.line("%s%s", indent, l)
	}
}

// indented adds an indent to what do writes.
func (s *sheet) indented(indent string, do func()) {
	old := s.indent
	s.indent += indent
	do()
	s.indent = old
}
