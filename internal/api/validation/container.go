package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api/podspec"
)

// containers checks all containers of a pod, and that they do not use the same names and host ports.
func containers(spec *corev1.PodSpec, declared sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), "a pod has at least one container"))
	}
	seen := sets.New[string]()
	each := func(list []corev1.Container, path *field.Path) {
		hostPorts := sets.New[string]() // init containers run before the others, so the two lists cannot clash
		for i := range list {
			c, at := &list[i], path.Index(i)
			if c.Name != "" && seen.Has(c.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
			}
			seen.Insert(c.Name)
			errs = append(errs, container(c, declared, at)...)
			errs = append(errs, ports(c.Ports, spec.HostNetwork, hostPorts, at.Child("ports"))...)
		}
	}
	each(spec.InitContainers, path.Child("initContainers"))
	for i := range spec.InitContainers {
		errs = append(errs, shortLived(&spec.InitContainers[i], path.Child("initContainers").Index(i))...)
	}
	each(spec.Containers, path.Child("containers"))
	return append(errs, ephemeral(spec, declared, seen, path.Child("ephemeralContainers"))...)
}

// shortLived forbids probes and hooks on an init container that is not a sidecar.
func shortLived(c *corev1.Container, path *field.Path) field.ErrorList {
	if podspec.IsSidecar(c) {
		return nil
	}
	var errs field.ErrorList
	forbid := func(name string, set bool) {
		if set {
			errs = append(errs, field.Forbidden(path.Child(name), "may not be set for init containers without restartPolicy=Always"))
		}
	}
	forbid("lifecycle", c.Lifecycle != nil)
	forbid("livenessProbe", c.LivenessProbe != nil)
	forbid("readinessProbe", c.ReadinessProbe != nil)
	forbid("startupProbe", c.StartupProbe != nil)
	return errs
}

func container(c *corev1.Container, declared sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, say(path.Child("name"), c.Name, validation.IsDNS1123Label(c.Name))...)
	}
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(path.Child("image"), ""))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, oneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy,
		corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, oneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, optional(path.Child("restartPolicy"), c.RestartPolicy, corev1.ContainerRestartPolicyAlways,
		corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
	errs = append(errs, env(c.Env, path.Child("env"))...)
	errs = append(errs, envFrom(c.EnvFrom, path.Child("envFrom"))...)
	errs = append(errs, resources(&c.Resources, path.Child("resources"))...)
	errs = append(errs, mounts(c, declared, path)...)
	errs = append(errs, containerSecurity(c.SecurityContext, path.Child("securityContext"))...)
	errs = append(errs, probes(c, path)...)
	if c.Lifecycle != nil {
		errs = append(errs, lifecycle(c.Lifecycle, path.Child("lifecycle"))...)
	}
	return errs
}

// ports checks one container's ports. hostPorts holds those used by the containers before it.
func ports(list []corev1.ContainerPort, hostNetwork bool, hostPorts sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range list {
		p, at := &list[i], path.Index(i)
		if p.Name != "" {
			errs = append(errs, say(at.Child("name"), p.Name, validation.IsValidPortName(p.Name))...)
			if names.Has(p.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names.Insert(p.Name)
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, say(at.Child("containerPort"), p.ContainerPort, validation.IsValidPortNum(int(p.ContainerPort)))...)
		}
		errs = append(errs, oneOf(at.Child("protocol"), p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		if p.HostIP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(at.Child("hostIP"), p.HostIP, true, nil)...)
		}
		if p.HostPort == 0 {
			continue
		}
		errs = append(errs, say(at.Child("hostPort"), p.HostPort, validation.IsValidPortNum(int(p.HostPort)))...)
		if hostNetwork && p.HostPort != p.ContainerPort {
			errs = append(errs, field.Invalid(at.Child("hostPort"), p.HostPort, "must match `containerPort` when `hostNetwork` is true"))
		}
		key := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)
		if hostPorts.Has(key) {
			errs = append(errs, field.Duplicate(at.Child("hostPort"), key))
		}
		hostPorts.Insert(key)
	}
	return errs
}

// fieldPaths are the fields that a fieldRef in an environment variable may name, besides labels and annotations.
var fieldPaths = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

// volumePaths are the fields that a fieldRef in a file may name, including all labels or annotations.
var volumePaths = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations",
}

func env(list []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		e, at := &list[i], path.Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			errs = append(errs, say(at.Child("name"), e.Name, validation.IsRelaxedEnvVarName(e.Name))...)
		}
		v, from := e.ValueFrom, at.Child("valueFrom")
		if v == nil {
			continue
		}
		sources := 0
		if r := v.FieldRef; r != nil {
			sources++
			errs = append(errs, fieldRef(r, fieldPaths, from.Child("fieldRef"))...)
		}
		if r := v.ResourceFieldRef; r != nil {
			sources++
			errs = append(errs, resourceRef(r, from.Child("resourceFieldRef"))...)
		}
		if r := v.ConfigMapKeyRef; r != nil {
			sources++
			errs = append(errs, keyRef(r.Name, r.Key, from.Child("configMapKeyRef"))...)
		}
		if r := v.SecretKeyRef; r != nil {
			sources++
			errs = append(errs, keyRef(r.Name, r.Key, from.Child("secretKeyRef"))...)
		}
		if v.FileKeyRef != nil {
			sources++
		}
		switch {
		case sources == 0:
			errs = append(errs, field.Invalid(from, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"))
		case sources > 1:
			errs = append(errs, field.Invalid(from, "", "may not have more than one field specified at a time"))
		case e.Value != "":
			errs = append(errs, field.Invalid(from, "", "may not be specified when `value` is not empty"))
		}
	}
	return errs
}

func envFrom(list []corev1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		e, at := &list[i], path.Index(i)
		if e.Prefix != "" {
			errs = append(errs, say(at.Child("prefix"), e.Prefix, validation.IsRelaxedEnvVarName(e.Prefix))...)
		}
		switch {
		case e.ConfigMapRef != nil && e.SecretRef != nil:
			errs = append(errs, field.Invalid(at, "", "may not have more than one field specified at a time"))
		case e.ConfigMapRef != nil:
			errs = append(errs, required(at.Child("configMapRef", "name"), e.ConfigMapRef.Name)...)
		case e.SecretRef != nil:
			errs = append(errs, required(at.Child("secretRef", "name"), e.SecretRef.Name)...)
		default:
			errs = append(errs, field.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	return errs
}

func keyRef(name, key string, path *field.Path) field.ErrorList {
	errs := required(path.Child("name"), name)
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, say(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

// fieldRef checks a reference to a field of the pod. allowed are the paths without a subscript.
func fieldRef(r *corev1.ObjectFieldSelector, allowed []string, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("apiVersion"), r.APIVersion, "v1")
	at := path.Child("fieldPath")
	if r.FieldPath == "" {
		return append(errs, field.Required(at, ""))
	}
	for _, of := range []string{"metadata.labels", "metadata.annotations"} {
		key, ok := strings.CutPrefix(r.FieldPath, of+"['")
		if !ok {
			continue
		}
		key, closed := strings.CutSuffix(key, "']")
		if !closed {
			return append(errs, field.Invalid(at, r.FieldPath, "must end with ']"))
		}
		return append(errs, say(at, r.FieldPath, validation.IsQualifiedName(strings.ToLower(key)))...)
	}
	if !slices.Contains(allowed, r.FieldPath) {
		errs = append(errs, field.NotSupported(at, r.FieldPath, append(slices.Clone(allowed), "metadata.labels['KEY']", "metadata.annotations['KEY']")))
	}
	return errs
}

func containerSecurity(sc *corev1.SecurityContext, path *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := ids(sc.RunAsUser, sc.RunAsGroup, path)
	errs = append(errs, seccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
	errs = append(errs, optional(path.Child("procMount"), sc.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
	if escalate := sc.AllowPrivilegeEscalation; escalate != nil && !*escalate {
		at := path.Child("allowPrivilegeEscalation")
		if sc.Privileged != nil && *sc.Privileged {
			errs = append(errs, field.Invalid(at, false, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
		}
		if sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN") {
			errs = append(errs, field.Invalid(at, false, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
		}
	}
	return errs
}
