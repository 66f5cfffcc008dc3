package login

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// outputLimit is how much of a command's output is kept; more is an error, since half an answer is none.
const outputLimit = 64 << 20

// ExitError is a command that ended with another code than 0.
type ExitError struct {
	Code   int
	Stderr string // its end
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("the command on the login node ended with code %d", e.Code)
	}
	return e.Stderr
}

// commandLimit is how long a command may take: more means that something on the host hangs, its disks for instance, while its sshd still
// gives signs of life.
const commandLimit = 2 * time.Minute

// Run has /bin/sh on the node run a script and returns what it printed. A script that ends with another code than 0 is an
// *ExitError. When ctx ends, or after two minutes, Run returns; what the script has started goes on.
func (n *Node) Run(ctx context.Context, script string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, n.limits.command, fmt.Errorf("%s gave no answer for %v: do its disks hang?", n.target.Addr, n.limits.command))
	defer cancel()
	return n.RunLong(ctx, script)
}

// RunLong is Run for what takes long, such as reading large files: ctx alone ends it.
func (n *Node) RunLong(ctx context.Context, script string) ([]byte, error) {
	select {
	case n.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	free := func() { <-n.slots }
	l, err := n.connected(ctx)
	if err != nil {
		free()
		return nil, err
	}
	s, err := n.session(ctx, l)
	if err != nil {
		free()
		return nil, err
	}
	// What the login shell's own scripts print comes before.
	begins := rand.Text()
	out, problems := &limited{limit: outputLimit}, &tail{}
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader("echo "+begins+"\n"+script), out, problems
	ended := make(chan error, 1)
	go func() {
		defer free() // the host counts the session until its command has ended, whether we wait or not
		defer s.Close()
		err := s.Start("/bin/sh -s")
		if err == nil {
			err = s.Wait()
			if errors.Is(err, io.EOF) { // the shell has ended, and well, without having read all that it was to run
				err = nil
			}
		}
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		s.Close()
		return nil, context.Cause(ctx)
	}
	noise, answer, began := bytes.Cut(out.Bytes(), []byte(begins+"\n"))
	var exit *ssh.ExitError
	switch {
	case errors.As(err, &exit) && exit.Signal() == "":
		return answer, &ExitError{Code: exit.ExitStatus(), Stderr: problems.String()}
	case err != nil:
		return nil, fmt.Errorf("a command on %s: %w", n.target.Addr, err)
	case out.over:
		return nil, fmt.Errorf("a command on %s printed more than %d MiB", n.target.Addr, outputLimit>>20)
	case !began:
		return nil, fmt.Errorf("the shell on %s ran nothing; it printed %q", n.target.Addr, noise[:min(len(noise), 200)])
	}
	return answer, nil
}

// sessionPatience is how long a refused session is asked for again: a host frees one a moment after its command has ended.
const sessionPatience = 5 * time.Second

func (n *Node) session(ctx context.Context, l *link) (*ssh.Session, error) {
	for began, pause := time.Now(), 10*time.Millisecond; ; pause = min(2*pause, time.Second/2) {
		s, err := l.client.NewSession()
		var refused *ssh.OpenChannelError
		if err == nil || !errors.As(err, &refused) || time.Since(began) > sessionPatience {
			if err != nil {
				err = fmt.Errorf("a session on %s: %w", n.target.Addr, err)
			}
			return s, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Files is the node's file system, as SFTP serves it. The client is everybody's: it must not be closed, and an error of the
// connection means to ask for it again.
func (n *Node) Files(ctx context.Context) (*sftp.Client, error) {
	l, err := n.connected(ctx)
	if err != nil {
		return nil, err
	}
	return l.sftp()
}

// limited keeps what is written up to a limit.
type limited struct {
	bytes.Buffer
	limit int
	over  bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > l.limit {
		l.over = true
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

// tail keeps the end of what is written.
type tail struct{ kept []byte }

const tailLimit = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailLimit; over > 0 {
		t.kept = append([]byte(nil), t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.kept)) }
