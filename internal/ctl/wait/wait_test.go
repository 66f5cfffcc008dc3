package wait

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/session"
)

// What is printed while a command waits, and how the wait ends. Each look advances the clock by a second.
func TestUntil(t *testing.T) {
	broken := errors.New("broken")
	for _, x := range []struct {
		name     string
		states   []string // "done" and "broken" end it
		timeout  time.Duration
		patience time.Duration
		took     time.Duration
		err      string
		told     string
	}{
		{name: "at once", states: []string{"done"}, took: time.Second},
		{name: "each state once", states: []string{"a", "a", "b", "done"}, took: 4 * time.Second, told: "x: a\nx: b\n"},
		{name: "nothing before patience is over", states: []string{"a", "b", "c", "done"}, patience: 3 * time.Second, took: 4 * time.Second, told: "x: c\n"},
		{name: "an error", states: []string{"a", "broken"}, took: 2 * time.Second, err: "broken", told: "x: a\n"},
		{name: "late", states: []string{"a", "a", "b", "c"}, timeout: 2 * time.Second, took: 3 * time.Second, err: "late: b after 3s", told: "x: a\n"},
		{name: "done, though late", states: []string{"a", "a", "done"}, timeout: 2 * time.Second, took: 3 * time.Second, told: "x: a\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var out, told bytes.Buffer
			now, looks := time.Time{}, 0
			s := &session.Session{Console: console.New(strings.NewReader(""), &out, &told, func(string) string { return "" }), Now: func() time.Time { return now }}
			took, err := Until(t.Context(), s, now, Awaited{
				Name: "x", Timeout: x.timeout, Patience: x.patience,
				Look: func(context.Context) (bool, string, error) {
					state := x.states[looks]
					looks++
					now = now.Add(time.Second)
					if state == "broken" {
						return false, "", broken
					}
					return state == "done", state, nil
				},
				Late: func(state string, took time.Duration) error { return fmt.Errorf("late: %s after %s", state, took) },
			})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if took != x.took || text != x.err || told.String() != x.told || out.Len() > 0 {
				t.Errorf("after %s, %q; told %q", took, text, told.String())
			}
		})
	}
}
