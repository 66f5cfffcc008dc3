package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

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
// *ExitError. When ctx ends, the script's session is closed; what it started with setsid goes on.
func (n *Node) Run(ctx context.Context, script string) ([]byte, error) {
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l, err := n.connected(ctx)
	if err != nil {
		return nil, err
	}
	s, err := l.client.NewSession()
	if err != nil {
		return nil, fmt.Errorf("a session on %s: %w", n.target.Addr, err)
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	out, problems := &limited{limit: outputLimit}, &tail{}
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader(script), out, problems
	err = s.Run("/bin/sh -s")
	var ended *ssh.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &ended) && ended.Signal() == "":
		return out.Bytes(), &ExitError{Code: ended.ExitStatus(), Stderr: problems.String()}
	case err != nil:
		return nil, fmt.Errorf("a command on %s: %w", n.target.Addr, err)
	case out.over:
		return nil, fmt.Errorf("a command on %s printed more than %d MiB", n.target.Addr, outputLimit>>20)
	}
	return out.Bytes(), nil
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
