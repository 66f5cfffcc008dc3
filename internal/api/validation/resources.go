package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// standard reports whether every node has the resource; other resources come from device plugins.
func standard(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		hugePages(name)
}

func hugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// resources checks the requests and limits of a container.
func resources(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	limits, requests := path.Child("limits"), path.Child("requests")
	for _, name := range sorted(r.Limits) {
		errs = append(errs, quantity(name, r.Limits[name], limits)...)
	}
	for _, name := range sorted(r.Requests) {
		request := r.Requests[name]
		errs = append(errs, quantity(name, request, requests)...)
		limit, limited := r.Limits[name]
		at := requests.Key(string(name))
		switch {
		case standard(name) && !hugePages(name):
			if limited && request.Cmp(limit) > 0 {
				errs = append(errs, field.Invalid(at, request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String()))
			}
		case !limited:
			errs = append(errs, field.Required(limits.Key(string(name)), "Limit must be set for non overcommitable resources"))
		case request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(at, request.String(), "must be equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	return errs
}

func quantity(name corev1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	at := path.Key(string(name))
	errs := resourceName(name, at)
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(at, q.String(), "must be greater than or equal to 0"))
	}
	if !standard(name) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(at, q.String(), "must be an integer"))
	}
	return errs
}

// resourceName checks a resource's name: a standard resource, or one with a domain: "example.com/gpu".
func resourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	switch {
	case standard(name):
		return nil
	case !strings.Contains(string(name), "/"):
		return field.ErrorList{field.Invalid(path, name,
			"must be a standard resource for containers (cpu, memory, ephemeral-storage, hugepages-SIZE) or a name with a domain, as in example.com/gpu")}
	}
	return say(path, name, validation.IsQualifiedName(string(name)))
}

func sorted(list corev1.ResourceList) []corev1.ResourceName {
	names := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// mounts checks where a container mounts the pod's volumes.
func mounts(c *corev1.Container, declared sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	paths := sets.New[string]()
	for i := range c.VolumeMounts {
		m, at := &c.VolumeMounts[i], path.Child("volumeMounts").Index(i)
		switch {
		case m.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case !declared.Has(m.Name):
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		switch {
		case m.MountPath == "":
			errs = append(errs, field.Required(at.Child("mountPath"), ""))
		case paths.Has(m.MountPath):
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		paths.Insert(m.MountPath)
		errs = append(errs, inside(at.Child("subPath"), m.SubPath)...)
		errs = append(errs, inside(at.Child("subPathExpr"), m.SubPathExpr)...)
		if m.SubPath != "" && m.SubPathExpr != "" {
			errs = append(errs, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		errs = append(errs, optional(at.Child("mountPropagation"), m.MountPropagation,
			corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional)...)
		if p := m.MountPropagation; p != nil && *p == corev1.MountPropagationBidirectional {
			if sc := c.SecurityContext; sc == nil || sc.Privileged == nil || !*sc.Privileged {
				errs = append(errs, field.Forbidden(at.Child("mountPropagation"), "Bidirectional mount propagation is available only to privileged containers"))
			}
		}
	}
	for i, d := range c.VolumeDevices {
		at := path.Child("volumeDevices").Index(i)
		errs = append(errs, required(at.Child("devicePath"), d.DevicePath)...)
		if !declared.Has(d.Name) {
			errs = append(errs, field.NotFound(at.Child("name"), d.Name))
		}
	}
	return errs
}

// inside checks that a path stays below its starting point. It may be empty.
func inside(path *field.Path, value string) field.ErrorList {
	var errs field.ErrorList
	if strings.HasPrefix(value, "/") {
		errs = append(errs, field.Invalid(path, value, "must be a relative path"))
	}
	return append(errs, noBacksteps(path, value)...)
}

func noBacksteps(path *field.Path, value string) field.ErrorList {
	if slices.Contains(strings.Split(value, "/"), "..") {
		return field.ErrorList{field.Invalid(path, value, "must not contain '..'")}
	}
	return nil
}
