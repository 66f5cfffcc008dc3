package describe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
)

func eventCount(e *corev1.Event) int {
	if e.Series != nil {
		return int(e.Series.Count)
	}
	return max(int(e.Count), 1)
}

// showEvents prints the events about an object. If they cannot be read, it prints that and does not fail.
func showEvents(ctx context.Context, s *session.Session, obj api.Object) {
	events, err := brief.EventsOf(ctx, s.API, obj)
	switch {
	case err != nil:
		s.Say("Events:  (not to be had: %s)", exit.Message(err))
	case len(events) == 0:
		s.Say("Events:  <none>")
	default:
		s.Say("Events:")
		printer.Table(s.Console, []string{"  Type", "Reason", "Age", "From", "Message"}, eventRows(s, events))
	}
}

// eventRows returns the rows in which describe shows events.
func eventRows(s *session.Session, events []*corev1.Event) [][]string {
	var rows [][]string
	for _, e := range events {
		when := s.Age(brief.EventTime(e))
		if n := eventCount(e); n > 1 {
			when = fmt.Sprintf("%s (x%d)", when, n)
		}
		from := e.Source.Component
		if from == "" {
			from = e.ReportingController
		}
		rows = append(rows, []string{"  " + e.Type, e.Reason, when, from, brief.Clip(e.Message, 500)})
	}
	return rows
}
