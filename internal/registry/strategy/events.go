package strategy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func eventStrategy() *registry.Strategy {
	return &registry.Strategy{
		Validate: checkOne(validation.Event),
		Fields:   eventFields,
		FieldNames: []string{
			"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
			"reason", "reportingComponent", "source", "type",
		},
	}
}

func eventFields(obj api.Object) fields.Set {
	e := obj.(*corev1.Event)
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	about := &e.InvolvedObject
	return fields.Set{
		"involvedObject.kind":            about.Kind,
		"involvedObject.namespace":       about.Namespace,
		"involvedObject.name":            about.Name,
		"involvedObject.uid":             string(about.UID),
		"involvedObject.apiVersion":      about.APIVersion,
		"involvedObject.resourceVersion": about.ResourceVersion,
		"involvedObject.fieldPath":       about.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         source,
		"type":                           e.Type,
	}
}
