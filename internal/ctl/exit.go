package ctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/client/remote"
)

// The exit codes, which scripts may trust.
const (
	codeFailed      = 1
	codeUsage       = 2
	codeNotFound    = 3
	codeConflict    = 4
	codeUnreachable = 5
)

// failure is an error that knows its exit code.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

func usagef(format string, args ...any) error {
	return &failure{codeUsage, fmt.Sprintf(format, args...)}
}

func failf(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...)}
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	var f *failure
	var exit *remote.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &exit):
		return exit.Code
	case remote.IsUnreachable(err):
		return codeUnreachable
	case apierrors.IsNotFound(err):
		return codeNotFound
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return codeConflict
	}
	return codeFailed
}

// exit is what main gets: an error with the code, and the text that a person reads.
func (p *program) exit(err error) error {
	if err == nil {
		return nil
	}
	var exit *remote.ExitError
	if errors.As(err, &exit) {
		return cli.Exit("", exit.Code) // the command has said what there was to say
	}
	return cli.Exit(p.paintErr(red, "error: ")+message(err), codeOf(err))
}

// message is an error in a person's words; the mistakes of a manifest stand one per line.
func message(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	s := status.Status()
	switch s.Reason {
	case metav1.StatusReasonInvalid:
		if s.Details != nil && len(s.Details.Causes) > 0 {
			return mistakes(s)
		}
	case metav1.StatusReasonForbidden:
		return s.Message + "\nThe certificate or token in use may not do this; root on the master may " +
			"(minik8sd ctl without --kubeconfig uses DATA/api.sock)."
	case metav1.StatusReasonUnauthorized:
		return "the server does not know this certificate or token; take the cluster's own kubeconfig (DATA/admin.kubeconfig)"
	}
	if s.Message == "" {
		return err.Error()
	}
	return s.Message
}

// mistakes lists what is wrong with an object, one per line with its path.
func mistakes(s metav1.Status) string {
	var b strings.Builder
	plural := ""
	if len(s.Details.Causes) > 1 {
		plural = "s"
	}
	fmt.Fprintf(&b, "%s %q has %d mistake%s:", strings.ToLower(s.Details.Kind), s.Details.Name, len(s.Details.Causes), plural)
	for _, c := range s.Details.Causes {
		if c.Field == "" {
			fmt.Fprintf(&b, "\n  %s", c.Message)
		} else {
			fmt.Fprintf(&b, "\n  %s: %s", c.Field, c.Message)
		}
	}
	return b.String()
}

// tally collects the failures of a command that works through several objects: each is told when
// it happens, and the command as a whole fails in the end.
type tally struct {
	p      *program
	done   int
	failed int
	code   int
	last   error
}

// add counts one object.
func (t *tally) add(err error) {
	t.done++
	if err == nil {
		return
	}
	// The last one is told by main, unless another follows.
	if t.last != nil {
		t.tell()
	}
	t.failed++
	t.last = err
	if code := codeOf(err); t.failed == 1 {
		t.code = code
	} else if code != t.code {
		t.code = codeFailed
	}
}

func (t *tally) tell() { t.p.note("%s%s", t.p.paintErr(red, "error: "), message(t.last)) }

// err is the command's error: the only one there was, or how many there were.
func (t *tally) err() error {
	switch {
	case t.failed == 0:
		return nil
	case t.failed == 1:
		return t.last
	}
	t.tell()
	return failf(t.code, "%d of %d failed", t.failed, t.done)
}
