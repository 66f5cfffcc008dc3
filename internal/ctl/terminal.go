package ctl

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"minik8s/internal/channels"
	"minik8s/internal/client/remote"
)

// onTerminal runs f with this program's streams as the flags say. With tty, the terminal passes every
// key on as it is while f runs, and f is told of changes of its size.
func (p *program) onTerminal(c *cli.Context, tty bool, f func(remote.Streams) error) error {
	st := remote.Streams{Stdout: p.out, Stderr: p.err}
	if c.Bool("stdin") {
		st.Stdin = p.in
	}
	if !tty {
		return f(st)
	}
	in, isFile := p.in.(*os.File)
	if st.Stdin == nil || !isFile || !p.inTTY {
		p.note("no terminal to hand over (-t needs -i and a terminal): going on without")
		return f(st)
	}
	fd := int(in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return failf(codeFailed, "the terminal: %v", err)
	}
	defer term.Restore(fd, before) //nolint:errcheck // nothing is left to be done about it
	sizes, stop := watchSize(fd)
	defer stop()
	st.TTY, st.Resize = true, sizes
	return f(st)
}

// watchSize tells the size of a terminal, now and after each change, until stop is called.
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
