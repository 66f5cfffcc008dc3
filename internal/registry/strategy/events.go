package strategy

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func eventStrategy() *registry.Strategy {
	return &registry.Strategy{
		Validate: checkOne(validation.Event),
		Fields:   eventFields,
	}
}

var eventFields = selectable(map[string]func(*corev1.Event) string{
	"involvedObject.kind":            func(e *corev1.Event) string { return e.InvolvedObject.Kind },
	"involvedObject.namespace":       func(e *corev1.Event) string { return e.InvolvedObject.Namespace },
	"involvedObject.name":            func(e *corev1.Event) string { return e.InvolvedObject.Name },
	"involvedObject.uid":             func(e *corev1.Event) string { return string(e.InvolvedObject.UID) },
	"involvedObject.apiVersion":      func(e *corev1.Event) string { return e.InvolvedObject.APIVersion },
	"involvedObject.resourceVersion": func(e *corev1.Event) string { return e.InvolvedObject.ResourceVersion },
	"involvedObject.fieldPath":       func(e *corev1.Event) string { return e.InvolvedObject.FieldPath },
	"reason":                         func(e *corev1.Event) string { return e.Reason },
	"reportingComponent":             func(e *corev1.Event) string { return e.ReportingController },
	"source": func(e *corev1.Event) string {
		if e.Source.Component == "" {
			return e.ReportingController
		}
		return e.Source.Component
	},
	"type": func(e *corev1.Event) string { return e.Type },
})
