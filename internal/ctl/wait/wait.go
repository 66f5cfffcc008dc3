package wait

import (
	"context"
	"time"

	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/session"
)

// Awaited is something that a command waits for.
type Awaited struct {
	// Name is its name in messages.
	Name string
	// Look reports whether it has happened, or else its present state. An error ends the wait.
	Look func(ctx context.Context) (done bool, state string, err error)
	// Late returns the error for when Timeout is over; a Timeout of 0 means no limit.
	Timeout time.Duration
	Late    func(state string, took time.Duration) error
	// Patience is the time during which the state is not printed.
	Patience time.Duration
	// Hint is printed after the time in a progress line. Note makes the line for output that is not a terminal, once
	// for each state; the default is "NAME: STATE".
	Hint string
	Note func(state string) string
}

// lineWidth is how many characters of a state a progress line shows. A line that wraps could not be cleared.
const lineWidth = 100

// Until waits for something and returns how long that took since start.
func Until(ctx context.Context, s *session.Session, start time.Time, a Awaited) (time.Duration, error) {
	defer s.EndProgress()
	told := ""
	for {
		done, state, err := a.Look(ctx)
		took := s.Now().Sub(start)
		switch {
		case done || err != nil:
			return took, err
		case a.Timeout > 0 && took > a.Timeout:
			return took, a.Late(state, took.Round(time.Second))
		case took < a.Patience:
		case s.ErrTTY:
			s.Progress("%s: %s (%s%s)", a.Name, brief.Clip(state, lineWidth), took.Round(time.Second), a.Hint)
		case state != told: // a log gets each state once
			s.Note("%s", a.note(state))
			told = state
		}
		if !s.Sleep(ctx, s.Pause) {
			return took, ctx.Err()
		}
	}
}

func (a *Awaited) note(state string) string {
	if a.Note != nil {
		return a.Note(state)
	}
	return a.Name + ": " + state
}
