package ctl

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// streams is where a command reads and writes. Results go to out, everything else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
	// tty says that out is a terminal, errTTY and inTTY the same of the others.
	tty, errTTY, inTTY bool
	colour             bool
}

func newStreams(in io.Reader, out, errOut io.Writer, getenv func(string) string) streams {
	s := streams{in: in, out: out, err: errOut, tty: isTerminal(out), errTTY: isTerminal(errOut), inTTY: isTerminal(in)}
	s.colour = s.tty && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// say writes a line of the result.
func (s *streams) say(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}

// note writes a line beside the result: a hint, a warning.
func (s *streams) note(format string, args ...any) {
	fmt.Fprintf(s.err, format+"\n", args...)
}

// progress writes over the line before it on a terminal, and nothing elsewhere: a log has no use
// for it.
func (s *streams) progress(format string, args ...any) {
	if s.errTTY {
		fmt.Fprintf(s.err, "\r\x1b[K"+format, args...)
	}
}

// endProgress takes the progress line away.
func (s *streams) endProgress() {
	if s.errTTY {
		fmt.Fprint(s.err, "\r\x1b[K")
	}
}

// The colours, as a terminal's control sequences name them.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	grey   = "90"
)

// paint colours text where that can be seen.
func (s *streams) paint(colour, text string) string {
	if !s.colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// paintErr is paint for what goes to err.
func (s *streams) paintErr(colour, text string) string {
	if !s.errTTY {
		return text
	}
	return s.paint(colour, text)
}

// stateColour is how a state is shown: what is well, what is under way, what is wrong.
func stateColour(state string) string {
	switch state {
	case "Running", "Ready", "Active", "Bound", "Succeeded", "Completed", "True", "Available":
		return green
	case "Pending", "ContainerCreating", "PodInitializing", "Terminating", "Unknown", "Starting",
		"Ready,SchedulingDisabled":
		return yellow
	case "", "<none>":
		return ""
	}
	return red
}
