package session

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"minik8s/internal/api"
	"minik8s/internal/ctl/console"
)

// Manager is the name under which ctl owns fields (metadata.managedFields).
const Manager = "minik8sd-ctl"

// Session is one command at work.
type Session struct {
	*console.Console
	API       Server
	Namespace string
	// NamespaceGiven says that the namespace was named on the command line.
	NamespaceGiven bool
	// Now is the clock.
	Now func() time.Time
	// Pause is how long a loop that waits sleeps between two requests.
	Pause time.Duration
}

// NamespaceFor is the namespace to look in for objects of a kind; empty for kinds that have none.
func (s *Session) NamespaceFor(kind *api.Kind) string {
	if !kind.Namespaced {
		return ""
	}
	return s.Namespace
}

// Sleep waits a moment; false means that the command was interrupted.
func (s *Session) Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Age is how long ago something was, as get writes it.
func (s *Session) Age(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(s.Now().Sub(t))
}

// When is a time and its age, as describe writes it.
func (s *Session) When(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return t.UTC().Format(time.RFC3339) + " (" + s.Age(t.Time) + " ago)"
}
