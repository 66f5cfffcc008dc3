package session

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"minik8s/internal/api"
	"minik8s/internal/ctl/console"
)

// Manager is ctl's field manager (metadata.managedFields).
const Manager = "minik8sd-ctl"

// Session is one running command.
type Session struct {
	*console.Console
	API       Server
	Namespace string
	// NamespaceGiven: the namespace was given on the command line.
	NamespaceGiven bool
	// Now is the clock.
	Now func() time.Time
	// Pause is how long a waiting loop sleeps between two requests.
	Pause time.Duration

	served []*api.Kind // what discovery said; nil: not asked yet
}

// Served returns the stored kinds that the server serves, also those that came while it ran. The server is asked once.
// If it does not answer, the kinds are those that are compiled in, and the error says why.
func (s *Session) Served(ctx context.Context) ([]*api.Kind, error) {
	if s.served == nil {
		kinds, err := s.API.Kinds(ctx)
		if err != nil {
			return api.Kinds, err
		}
		s.served = kinds
	}
	return s.served, nil
}

// NamespaceFor returns the namespace for objects of a kind; empty for kinds without namespaces.
func (s *Session) NamespaceFor(kind *api.Kind) string {
	if !kind.Namespaced {
		return ""
	}
	return s.Namespace
}

// Sleep sleeps for d; false means that the command was interrupted.
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

// Age returns the time since t, in get's format.
func (s *Session) Age(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(s.Now().Sub(t))
}

// When returns a time and its age, in describe's format.
func (s *Session) When(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return t.UTC().Format(time.RFC3339) + " (" + s.Age(t.Time) + " ago)"
}
