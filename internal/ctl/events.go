package ctl

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"minik8s/internal/ctl/brief"
)

func eventCount(e *corev1.Event) int {
	if e.Series != nil {
		return int(e.Series.Count)
	}
	return max(int(e.Count), 1)
}

// age is how long ago something was, as get writes it.
func (p *program) age(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(p.now().Sub(t))
}

// eventRows lays events out as describe shows them.
func (p *program) eventRows(events []*corev1.Event) [][]string {
	var rows [][]string
	for _, e := range events {
		when := p.age(brief.EventTime(e))
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
