package ctl

import (
	"context"
	"fmt"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// eventsOf are the events about an object, the newest last.
func (s *session) eventsOf(ctx context.Context, obj api.Object) ([]*corev1.Event, error) {
	list, _, err := client.All[*corev1.Event](ctx, s.api, api.Events, client.ListOptions{
		// Events about objects without a namespace are kept in the default one.
		Namespace: orDefault(obj.GetNamespace()),
		Fields:    fields.OneTermEqualSelector("involvedObject.name", obj.GetName()),
	})
	if err != nil {
		return nil, err
	}
	kind := api.KindOf(obj)
	var out []*corev1.Event
	for _, e := range list {
		about := e.InvolvedObject
		// Who reports on a node often knows its name only, and puts that in place of the UID.
		same := about.UID == "" || about.UID == obj.GetUID() || string(about.UID) == obj.GetName()
		if same && about.Name == obj.GetName() && (kind == nil || about.Kind == kind.Kind) {
			out = append(out, e)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return eventTime(out[i]).Before(eventTime(out[j])) })
	return out, nil
}

func orDefault(namespace string) string {
	if namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}

// eventTime is when an event was last seen; the API has grown four places for it.
func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

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
		when := p.age(eventTime(e))
		if n := eventCount(e); n > 1 {
			when = fmt.Sprintf("%s (x%d)", when, n)
		}
		from := e.Source.Component
		if from == "" {
			from = e.ReportingController
		}
		rows = append(rows, []string{"  " + e.Type, e.Reason, when, from, clip(e.Message, 500)})
	}
	return rows
}
