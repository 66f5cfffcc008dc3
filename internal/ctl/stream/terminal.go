package stream

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"minik8s/internal/channels"
	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
)

// Run runs f with the console's streams; the input is included only if stdin is true. With tty the terminal passes on
// every key unchanged while f runs, and f is told when the size changes. If there is no terminal, f runs without one.
func Run(c *console.Console, stdin, tty bool, f func(remote.Streams) error) error {
	st := remote.Streams{Stdout: c.Out, Stderr: c.Err}
	if stdin {
		st.Stdin = c.In
	}
	if !tty {
		return f(st)
	}
	in, isFile := c.In.(*os.File)
	if st.Stdin == nil || !isFile || !c.InTTY {
		c.Note("no terminal to hand over (-t needs -i and a terminal): going on without")
		return f(st)
	}
	fd := int(in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return exit.Failf(exit.Failed, "the terminal: %v", err)
	}
	defer term.Restore(fd, before) //nolint:errcheck // nothing is left to be done about it
	sizes, stop := watchSize(fd)
	defer stop()
	st.TTY, st.Resize = true, sizes
	return f(st)
}

// watchSize sends the size of a terminal, now and after each change, until stop is called.
func watchSize(fd int) (<-chan channels.TermSize, func()) {
	sizes, done := make(chan channels.TermSize), make(chan struct{})
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		defer signal.Stop(changed)
		for {
			if w, h, err := term.GetSize(fd); err == nil && w > 0 && h > 0 {
				select {
				case sizes <- channels.TermSize{Width: uint16(w), Height: uint16(h)}:
				case <-done:
					return
				}
			}
			select {
			case <-changed:
			case <-done:
				return
			}
		}
	}()
	return sizes, func() { close(done) }
}
