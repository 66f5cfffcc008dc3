package top

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// View is what is shown.
type View string

// The views.
const (
	Nodes      View = "nodes"
	Pods       View = "pods"
	Containers View = "containers"
)

// Request is what the user asks for.
type Request struct {
	View View
	// Names are those of nodes or pods; none: all.
	Names         []string
	AllNamespaces bool
	Labels        string
	Sort          string // one of Orders
	// Once prints a table and ends. So it is where the output is no terminal.
	Once      bool
	NoHeaders bool
	// Interval is the time between two questions.
	Interval time.Duration
}

// Run shows it, live until q is pressed or ctx ends.
func Run(ctx context.Context, s *session.Session, r Request) error {
	in, inFile := s.In.(*os.File)
	out, outFile := s.Out.(*os.File)
	if r.Once || !inFile || !outFile || !s.InTTY || !term.IsTerminal(int(out.Fd())) {
		return once(ctx, s, &r)
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return exit.Failf(exit.Failed, "the terminal: %v", err)
	}
	defer term.Restore(int(in.Fd()), before) //nolint:errcheck // nothing is left to be done about it
	keys := make(chan byte)
	go func() {
		one := make([]byte, 1)
		for {
			if n, err := in.Read(one); err != nil || n == 0 {
				close(keys)
				return
			}
			keys <- one[0]
		}
	}()
	size := func() (int, int) {
		if w, h, err := term.GetSize(int(out.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
		return 80, 24
	}
	return live(ctx, s, &r, out, keys, size)
}

func once(ctx context.Context, s *session.Session, r *Request) error {
	rows, err := read(ctx, s, r)
	if err != nil {
		return err
	}
	order(rows, r.Sort)
	t := table(r.View, rows, r.AllNamespaces, 0)
	if len(rows) == 0 {
		s.Note("nothing is known of any of the %s that were asked for: none runs, or all have just been started", r.View)
		return nil
	}
	if r.NoHeaders {
		t = t[1:]
	}
	for _, line := range lines(t) {
		s.Say("%s", line)
	}
	return nil
}

// The control sequences of a terminal: its other screen and back, the upper left corner, and what is right of or below
// the cursor removed.
const (
	enter = "\x1b[?1049h\x1b[?25l"
	leave = "\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	rest  = "\x1b[K"
	below = "\x1b[J"
)

// answer is what came of one question.
type answer struct {
	turn int // of the question
	rows []row
	err  error
}

// live draws after each answer and each key. What cannot be read is said, and tried again. Keys are taken also while a server is silent.
func live(ctx context.Context, s *session.Session, r *Request, out io.Writer, keys <-chan byte, size func() (width, height int)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	io.WriteString(out, enter)       //nolint:errcheck // the terminal would be gone
	defer io.WriteString(out, leave) //nolint:errcheck // as above
	var rows []row
	known := map[View]courses{} // who looks at something else for a while finds them again
	problem, turn := "", 0
	answers := make(chan answer)
	ask := func() (cancel context.CancelFunc) {
		turn++
		asking, cancel := context.WithCancel(ctx)
		q, of := *r, turn
		go func() {
			got, err := read(asking, s, &q)
			select {
			case answers <- answer{of, got, err}:
			case <-ctx.Done():
			}
		}()
		return cancel
	}
	cancel := ask()
	next := time.NewTimer(0)
	next.Stop()
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			cancel()
			return nil
		case <-next.C:
			cancel()
			cancel = ask()
			continue // what is there stays until there is something else
		case a := <-answers:
			if a.turn != turn { // nobody wants to know any more
				continue
			}
			if problem = ""; a.err != nil {
				problem, _, _ = strings.Cut(exit.Message(a.err), "\n")
			} else {
				rows, known[r.View] = a.rows, known[r.View].add(a.rows)
			}
			next.Reset(r.Interval)
		case key, ok := <-keys:
			if view, changed := r.press(key); !ok || view == "" {
				cancel()
				return nil
			} else if changed {
				rows, problem = nil, ""
				next.Stop()
				cancel()
				cancel = ask()
			}
		}
		order(rows, r.Sort)
		w, h := size()
		io.WriteString(out, home+strings.Join(frame(r, rows, problem, w, h), rest+"\r\n")+rest+below) //nolint:errcheck // as above
	}
}

// press changes the request as a key says; the view is empty at the end. changed: what was read is of no use any more.
func (r *Request) press(key byte) (view View, changed bool) {
	before := r.View
	switch key {
	case 'n':
		r.View, r.Names = Nodes, nil
	case 'p':
		r.View = Pods
	case 't':
		r.View = Containers
	case 'c':
		r.Sort = ByCPU
	case 'm':
		r.Sort = ByMemory
	case 'a':
		r.Sort = ByName
	case 'q', 3, 4: // and ^C, ^D
		return "", false
	}
	if changed = r.View != before; changed && before == Nodes {
		r.Names = nil
	}
	return r.View, changed
}
