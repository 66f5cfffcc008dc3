package validation

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// metric checks a metric of an autoscaler: one source, of the type that it says. Of several sources only the first is
// looked into, as in Kubernetes (pkg/apis/autoscaling/validation).
func metric(m *autoscalingv2.MetricSpec, path *field.Path, described referenceRule) field.ErrorList {
	sources := []struct {
		of    autoscalingv2.MetricSourceType
		name  string
		there bool
		check func(path *field.Path) field.ErrorList
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil, func(p *field.Path) field.ErrorList {
			errs := crossReference(&m.Object.DescribedObject, p.Child("describedObject"), described)
			return append(errs, objectOrExternal(&m.Object.Metric, &m.Object.Target, p, "must set either a target value or averageValue")...)
		}},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil, func(p *field.Path) field.ErrorList {
			t := &m.External.Target
			errs := objectOrExternal(&m.External.Metric, t, p, "must set either a target value for metric or a per-pod target")
			if t.Value != nil && t.AverageValue != nil {
				errs = append(errs, field.Forbidden(p.Child("target", "value"), "may not set both a target value for metric and a per-pod target"))
			}
			return errs
		}},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil, func(p *field.Path) field.ErrorList {
			errs := identifier(&m.Pods.Metric, p.Child("metric"))
			errs = append(errs, metricTarget(&m.Pods.Target, p.Child("target"))...)
			if m.Pods.Target.AverageValue == nil {
				errs = append(errs, field.Required(p.Child("target", "averageValue"), "must specify a positive target averageValue"))
			}
			return errs
		}},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil, func(p *field.Path) field.ErrorList {
			var errs field.ErrorList
			if m.Resource.Name == "" {
				errs = append(errs, field.Required(p.Child("name"), "must specify a resource name"))
			}
			return append(errs, usageTarget(&m.Resource.Target, p.Child("target"))...)
		}},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil, func(p *field.Path) field.ErrorList {
			return containerResource(m.ContainerResource, p)
		}},
	}
	var errs field.ErrorList
	var types []autoscalingv2.MetricSourceType
	present, known := 0, false
	for _, s := range sources {
		types = append(types, s.of)
		if s.there {
			if present++; present == 1 {
				errs = append(errs, s.check(path.Child(s.name))...)
			}
		}
		if s.of == m.Type {
			if known = true; !s.there {
				errs = append(errs, field.Required(path.Child(s.name), "must populate information for the given metric source"))
			}
		}
	}
	if m.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must specify a metric source type"))
	}
	if !known {
		errs = append(errs, field.NotSupported(path.Child("type"), m.Type, types))
	}
	for _, s := range sources {
		if present != 1 && s.there && s.of != m.Type {
			errs = append(errs, field.Forbidden(path.Child(s.name), "must populate the given metric source only"))
		}
	}
	return errs
}

func objectOrExternal(id *autoscalingv2.MetricIdentifier, t *autoscalingv2.MetricTarget, path *field.Path, missing string) field.ErrorList {
	errs := identifier(id, path.Child("metric"))
	errs = append(errs, metricTarget(t, path.Child("target"))...)
	if t.Value == nil && t.AverageValue == nil {
		errs = append(errs, field.Required(path.Child("target", "averageValue"), missing))
	}
	return errs
}

func containerResource(c *autoscalingv2.ContainerResourceMetricSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must specify a resource name"))
	} else {
		errs = append(errs, containerResourceName(c.Name, path.Child("name"))...)
	}
	if c.Container == "" {
		errs = append(errs, field.Required(path.Child("container"), "must specify a container"))
	} else {
		errs = append(errs, say(path.Child("container"), c.Container, validation.IsDNS1123Label(c.Container))...)
	}
	return append(errs, usageTarget(&c.Target, path.Child("target"))...)
}

func containerResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	if standard(name) { // hugepages-SIZE too
		return say(path, name, validation.IsQualifiedName(string(name)))
	}
	return resourceName(name, path)
}

// usageTarget checks the target of a metric of what containers use.
func usageTarget(t *autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	errs := metricTarget(t, path)
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		errs = append(errs, field.Required(path.Child("averageUtilization"), "must set either a target raw value or a target utilization"))
	case t.AverageUtilization != nil && t.AverageValue != nil:
		errs = append(errs, field.Forbidden(path.Child("averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return errs
}

func metricTarget(t *autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	case "":
		errs = append(errs, field.Required(path.Child("type"), "must specify a metric target type"))
		fallthrough
	default:
		errs = append(errs, field.Invalid(path.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue"))
	}
	if t.Value != nil && t.Value.Sign() != 1 {
		errs = append(errs, field.Invalid(path.Child("value"), t.Value.String(), "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() != 1 {
		errs = append(errs, field.Invalid(path.Child("averageValue"), t.AverageValue.String(), "must be positive"))
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(path.Child("averageUtilization"), *t.AverageUtilization, "must be greater than 0"))
	}
	return errs
}

func identifier(id *autoscalingv2.MetricIdentifier, path *field.Path) field.ErrorList {
	return pathSegment(path.Child("name"), id.Name, "must specify a metric name")
}
