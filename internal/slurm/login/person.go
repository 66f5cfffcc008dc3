package login

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"
)

// personLimit is how long a login may take that a person helps with; sshd waits two minutes by default.
const personLimit = 2 * time.Minute

// Question is what a host asks the person who logs in.
type Question struct {
	Host        string // host:port; a jump host asks, too
	Instruction string // what the host says before it asks
	Prompts     []Prompt
}

// Prompt is one thing that is asked for.
type Prompt struct {
	Text string
	Echo bool // the answer may be shown while it is typed
}

// Ask has a person answer a question: one answer for each prompt.
type Ask func(ctx context.Context, q Question) ([]string, error)

// NeededError is a host at which only a person can log in, and nobody has.
type NeededError struct{ Host string }

func (e *NeededError) Error() string { return "nobody is logged in at " + e.Host }

// interactive reports whether a person is needed on the way to the host.
func (t *Target) interactive() bool {
	return t != nil && (t.Interactive || t.Jump.interactive())
}

// Login opens the connection with the help of a person, unless it stands already. Of hosts that are not interactive nothing is asked.
// The connection then serves everybody until it breaks; it is not opened anew without a person.
func (n *Node) Login(ctx context.Context, ask Ask) error {
	if n.stands() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, personLimit)
	defer cancel()
	l, err := dial(ctx, &n.target, n.dialer, ask)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		l.close()
		return errClosed
	case n.link != nil && !n.link.broken(): // somebody else was quicker
		l.close()
		return nil
	}
	n.use(l)
	return nil
}

func (n *Node) stands() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link != nil && !n.link.broken()
}

// asked are the ways to log in that need a person.
func (t *Target) asked(ctx context.Context, ask Ask) []ssh.AuthMethod {
	return []ssh.AuthMethod{
		ssh.KeyboardInteractive(func(_, instruction string, questions []string, echos []bool) ([]string, error) {
			if len(questions) == 0 { // the host only says something
				return nil, nil
			}
			q := Question{Host: t.Addr, Instruction: instruction}
			for i, text := range questions {
				q.Prompts = append(q.Prompts, Prompt{Text: text, Echo: echos[i]})
			}
			answers, err := ask(ctx, q)
			if err == nil && len(answers) != len(questions) {
				err = fmt.Errorf("%s asks %d things, and %d were answered", t.Addr, len(questions), len(answers))
			}
			return answers, err
		}),
		ssh.PasswordCallback(func() (string, error) {
			answers, err := ask(ctx, Question{Host: t.Addr, Prompts: []Prompt{{Text: t.User + "'s password: "}}})
			if err != nil || len(answers) != 1 {
				return "", fmt.Errorf("no password for %s was given: %w", t.Addr, err)
			}
			return answers[0], nil
		}),
	}
}
