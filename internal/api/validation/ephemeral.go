package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ephemeral checks a pod's ephemeral containers. They have the rules of ordinary containers, without the fields that
// only make sense for lasting parts of a pod. taken are the names of the other containers.
func ephemeral(spec *corev1.PodSpec, declared, taken sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	others := taken.Clone()
	for i := range spec.EphemeralContainers {
		e, at := &spec.EphemeralContainers[i], path.Index(i)
		c := (*corev1.Container)(&e.EphemeralContainerCommon)
		if c.Name != "" && taken.Has(c.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		taken.Insert(c.Name)
		errs = append(errs, container(c, declared, at)...)
		if e.TargetContainerName != "" && !others.Has(e.TargetContainerName) {
			errs = append(errs, field.NotFound(at.Child("targetContainerName"), e.TargetContainerName))
		}
		errs = append(errs, passing(c, at)...)
	}
	return errs
}

// passing forbids what an ephemeral container may not have. It may not use subPath, because a subPath is a bind mount
// that stays until the pod ends.
func passing(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	forbid := func(at *field.Path, set bool) {
		if set {
			errs = append(errs, field.Forbidden(at, "cannot be set for an Ephemeral Container"))
		}
	}
	r := &c.Resources
	forbid(path.Child("ports"), len(c.Ports) > 0)
	forbid(path.Child("resources"), len(r.Limits)+len(r.Requests)+len(r.Claims) > 0)
	forbid(path.Child("resizePolicy"), len(c.ResizePolicy) > 0)
	forbid(path.Child("restartPolicy"), c.RestartPolicy != nil)
	forbid(path.Child("restartPolicyRules"), len(c.RestartPolicyRules) > 0)
	forbid(path.Child("livenessProbe"), c.LivenessProbe != nil)
	forbid(path.Child("readinessProbe"), c.ReadinessProbe != nil)
	forbid(path.Child("startupProbe"), c.StartupProbe != nil)
	forbid(path.Child("lifecycle"), c.Lifecycle != nil)
	for i := range c.VolumeMounts {
		m, at := &c.VolumeMounts[i], path.Child("volumeMounts").Index(i)
		forbid(at.Child("subPath"), m.SubPath != "")
		forbid(at.Child("subPathExpr"), m.SubPathExpr != "")
	}
	return errs
}

// PodCreate checks what is forbidden only in a new pod.
func PodCreate(pod *corev1.Pod) field.ErrorList {
	if len(pod.Spec.EphemeralContainers) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "ephemeralContainers"),
		"cannot be set on create: add them to the running pod by its subresource ephemeralcontainers, as kubectl debug does")}
}

// PodEphemeralUpdate checks a write of the ephemeral containers of old: they may only be added.
func PodEphemeralUpdate(pod, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec", "ephemeralContainers")
	now := map[string]*corev1.EphemeralContainer{} // a patch may change their order
	for i := range pod.Spec.EphemeralContainers {
		now[pod.Spec.EphemeralContainers[i].Name] = &pod.Spec.EphemeralContainers[i]
	}
	var errs field.ErrorList
	for i := range old.Spec.EphemeralContainers {
		was := &old.Spec.EphemeralContainers[i]
		switch is := now[was.Name]; {
		case is == nil:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed", was.Name)))
		case !apiequality.Semantic.DeepEqual(is, was):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed", was.Name)))
		}
	}
	return errs
}
