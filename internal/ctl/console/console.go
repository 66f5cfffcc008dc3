package console

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"minik8s/internal/ctl/exit"
)

// Console is where a command reads and writes. Results go to Out, everything else to Err.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	// InTTY and ErrTTY say whether these are terminals.
	InTTY, ErrTTY bool

	colour bool
}

// New makes a console from three streams. NO_COLOR and TERM=dumb in the environment turn colours off.
func New(in io.Reader, out, errOut io.Writer, getenv func(string) string) *Console {
	return &Console{In: in, Out: out, Err: errOut, InTTY: isTerminal(in), ErrTTY: isTerminal(errOut),
		colour: isTerminal(out) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Say writes a line of the result.
func (c *Console) Say(format string, args ...any) {
	fmt.Fprintf(c.Out, format+"\n", args...)
}

// Note writes a line that is not part of the result: a hint, a warning.
func (c *Console) Note(format string, args ...any) {
	fmt.Fprintf(c.Err, format+"\n", args...)
}

// Progress replaces the last progress line on a terminal. Elsewhere it writes nothing, since logs do not need it.
func (c *Console) Progress(format string, args ...any) {
	if c.ErrTTY {
		fmt.Fprintf(c.Err, "\r\x1b[K"+format, args...)
	}
}

// EndProgress clears the progress line.
func (c *Console) EndProgress() {
	if c.ErrTTY {
		fmt.Fprint(c.Err, "\r\x1b[K")
	}
}

// The colours, as control sequences of a terminal.
const (
	Bold   = "1"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Blue   = "34"
)

// Paint colours text, if the output is a terminal.
func (c *Console) Paint(colour, text string) string {
	if !c.colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// PaintErr is like Paint, for text that goes to Err.
func (c *Console) PaintErr(colour, text string) string {
	if !c.ErrTTY {
		return text
	}
	return c.Paint(colour, text)
}

// Name makes a name printable that somebody else has chosen, a file's for instance: one with control characters, which would drive the
// terminal, comes quoted as in Go.
func Name(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// StateColour returns the colour of a state: green for good, yellow for in progress, red for wrong.
func StateColour(state string) string {
	switch state {
	case "Running", "Ready", "Active", "Bound", "Succeeded", "Completed", "True", "Available":
		return Green
	case "Pending", "ContainerCreating", "PodInitializing", "Terminating", "Unknown", "Starting",
		"Ready,SchedulingDisabled":
		return Yellow
	case "", "<none>":
		return ""
	}
	return Red
}

// Complain prints the error of one object, for a command that continues with the next.
func (c *Console) Complain(err error) { c.Note("%s%s", c.PaintErr(Red, "error: "), exit.Message(err)) }

// Tally counts the failures of a command that works on several objects. It prints all errors but the last.
func (c *Console) Tally() *exit.Tally { return &exit.Tally{Tell: c.Complain} }
