package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// Run has /bin/sh on the node run a script and returns what it printed. A script that ends with another code than 0 is an
// *ExitError. When ctx ends, Run returns; what the script has started goes on.
func (n *Node) Run(ctx context.Context, script string) ([]byte, error) {
	select {
	case n.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
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
	out, problems := &limited{limit: outputLimit}, &tail{}
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader(script), out, problems
	ended := make(chan error, 1)
	go func() {
		defer free() // the host counts the session until its command has ended, whether we wait or not
		defer s.Close()
		ended <- s.Run("/bin/sh -s")
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		s.Close()
		return nil, ctx.Err()
	}
	var exit *ssh.ExitError
	switch {
	case errors.As(err, &exit) && exit.Signal() == "":
		return out.Bytes(), &ExitError{Code: exit.ExitStatus(), Stderr: problems.String()}
	case err != nil:
		return nil, fmt.Errorf("a command on %s: %w", n.target.Addr, err)
	case out.over:
		return nil, fmt.Errorf("a command on %s printed more than %d MiB", n.target.Addr, outputLimit>>20)
	}
	return out.Bytes(), nil
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
			return nil, ctx.Err()
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
