package api

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// View makes a kind another version of a stored kind: the same objects, under another group and version.
type View struct {
	Of *Kind
	// Shown converts a stored object to this version, and Stored converts it back. Both return a new object, which may
	// share data with the old one.
	Shown, Stored func(Object) Object
	// Fields maps the names of field selectors in this version to those of the stored version.
	Fields map[string]string
}

// EventsV1 are Events in the newer API.
var EventsV1 = &Kind{
	Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", Singular: "event",
	ShortNames: []string{"ev"}, Namespaced: true,
	New:     func() Object { return &eventsv1.Event{} },
	NewList: func() runtime.Object { return &eventsv1.EventList{} },
	View: &View{Of: Events,
		Shown:  func(obj Object) Object { return newEvent(obj.(*corev1.Event)) },
		Stored: func(obj Object) Object { return coreEvent(obj.(*eventsv1.Event)) },
		Fields: map[string]string{
			"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace", "regarding.name": "involvedObject.name",
			"regarding.uid": "involvedObject.uid", "regarding.apiVersion": "involvedObject.apiVersion",
			"regarding.resourceVersion": "involvedObject.resourceVersion", "regarding.fieldPath": "involvedObject.fieldPath",
			"reportingController": "reportingComponent",
		}},
}

// Views lists the kinds that are another version of a stored kind.
var Views = []*Kind{EventsV1}

func newEvent(e *corev1.Event) *eventsv1.Event {
	out := &eventsv1.Event{ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, Regarding: e.InvolvedObject, Related: e.Related, Note: e.Message, Type: e.Type,
		DeprecatedSource: e.Source, DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp, DeprecatedCount: e.Count}
	if e.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}

func coreEvent(e *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, InvolvedObject: e.Regarding, Related: e.Related, Message: e.Note, Type: e.Type,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount}
	if e.Series != nil {
		out.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}
