package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/client/remote"
)

// The exit codes, on which scripts may rely; 0 is success.
const (
	Failed      = 1
	Usage       = 2
	NotFound    = 3
	Conflict    = 4
	Unreachable = 5
)

// failure is an error with an exit code.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

// Usagef returns an error about wrong usage of a command.
func Usagef(format string, args ...any) error {
	return &failure{Usage, fmt.Sprintf(format, args...)}
}

// Failf returns an error with an exit code.
func Failf(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...)}
}

// CodeOf returns the exit code of an error.
func CodeOf(err error) int {
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
		return Unreachable
	case apierrors.IsNotFound(err):
		return NotFound
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return Conflict
	}
	return Failed
}

// Message returns the text of an error for people. The mistakes in a manifest are listed one per line.
func Message(err error) string {
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

// Tally counts the failures of a command that works on several objects. The command continues after a failure, and
// fails at the end.
type Tally struct {
	// Tell prints the error of one object, once another one fails too.
	Tell func(error)

	done   int
	failed int
	code   int
	last   error
}

// Add counts the result of one object.
func (t *Tally) Add(err error) {
	t.done++
	if err == nil {
		return
	}
	// main prints a single error. With another one, the earlier error is printed now.
	if t.last != nil {
		t.Tell(t.last)
	}
	t.failed++
	t.last = err
	if code := CodeOf(err); t.failed == 1 {
		t.code = code
	} else if code != t.code {
		t.code = Failed
	}
}

// Err returns the command's error: the only one, or how many there were.
func (t *Tally) Err() error {
	switch {
	case t.failed == 0:
		return nil
	case t.failed == 1:
		return t.last
	}
	t.Tell(t.last)
	return Failf(t.code, "%d of %d failed", t.failed, t.done)
}
