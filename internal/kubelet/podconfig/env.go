package podconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/objects"
)

// environment is the container's environment, in order, with references to earlier variables expanded: first the
// variables of Services, then those of envFrom, then those of env. HOSTNAME is no part of it: the runtime sets that, so $(HOSTNAME) stays as
// it is written unless the container declares it.
func (b *Builder) environment(ctx context.Context, pod *corev1.Pod, c *corev1.Container, sandbox *cri.Sandbox) ([]cri.EnvVar, error) {
	values := map[string]string{}
	var out []cri.EnvVar
	set := func(name, value string) {
		if _, again := values[name]; again { // the last value counts, in the first one's position
			for i := range out {
				if out[i].Name == name {
					out[i].Value = value
				}
			}
		} else {
			out = append(out, cri.EnvVar{Name: name, Value: value})
		}
		values[name] = value
	}
	if b.Services != nil {
		vars, err := b.Services.Variables(ctx, pod)
		if err != nil {
			return nil, err
		}
		for _, v := range vars {
			set(v.Name, v.Value)
		}
	}
	for i := range c.EnvFrom {
		if err := b.envFrom(ctx, pod, c, &c.EnvFrom[i], set); err != nil {
			return nil, err
		}
	}
	for i := range c.Env {
		e := &c.Env[i]
		if e.ValueFrom == nil {
			set(e.Name, expand(e.Value, values))
			continue
		}
		value, ok, err := b.valueFrom(ctx, pod, c, e.ValueFrom, sandbox)
		if err != nil {
			return nil, err
		}
		if ok {
			set(e.Name, value)
		}
	}
	return out, nil
}

// envFrom sets a variable for each key of a ConfigMap or Secret. Keys that are not valid names are left out, with an
// Event.
func (b *Builder) envFrom(ctx context.Context, pod *corev1.Pod, c *corev1.Container, from *corev1.EnvFromSource, set func(name, value string)) error {
	data := map[string]string{}
	what := ""
	switch {
	case from.ConfigMapRef != nil:
		m, err := b.ConfigMap(ctx, pod.Namespace, from.ConfigMapRef.Name)
		if err != nil {
			return unlessOptional(err, from.ConfigMapRef.Optional)
		}
		data, what = m.Data, "ConfigMap "+pod.Namespace+"/"+m.Name
	case from.SecretRef != nil:
		s, err := b.Secret(ctx, pod.Namespace, from.SecretRef.Name)
		if err != nil {
			return unlessOptional(err, from.SecretRef.Optional)
		}
		for key, value := range s.Data {
			data[key] = string(value)
		}
		what = "Secret " + pod.Namespace + "/" + s.Name
	}
	var unfit []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		name := from.Prefix + key
		if len(validation.IsRelaxedEnvVarName(name)) > 0 {
			unfit = append(unfit, name)
			continue
		}
		set(name, data[key])
	}
	if len(unfit) > 0 {
		b.Events.EventRef(podspec.Reference(pod, c.Name), corev1.EventTypeWarning, "InvalidEnvironmentVariableNames",
			"Keys [%s] from the EnvFrom %s were skipped since they are considered invalid environment variable names.", strings.Join(unfit, ", "), what)
	}
	return nil
}

// unlessOptional drops the error if an optional object, or a key of one, is missing.
func unlessOptional(err error, optional *bool) error {
	var missing *objects.Missing
	if errors.As(err, &missing) && ptr.Deref(optional, false) {
		return nil
	}
	return err
}

// valueFrom is the value of a variable that names a source; ok is false if there is to be no variable,
// because what it names is optional and missing.
func (b *Builder) valueFrom(ctx context.Context, pod *corev1.Pod, c *corev1.Container, from *corev1.EnvVarSource, sandbox *cri.Sandbox) (value string, ok bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = b.fieldOf(pod, from.FieldRef.FieldPath, sandbox)
	case from.ResourceFieldRef != nil:
		of := c
		if name := from.ResourceFieldRef.ContainerName; name != "" && name != c.Name {
			if of = podspec.Container(pod, name); of == nil {
				return "", false, fmt.Errorf("the pod has no container %s", name)
			}
		}
		value, err = resourceOf(of, from.ResourceFieldRef, b.Allocatable())
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		var m *corev1.ConfigMap
		if m, err = b.ConfigMap(ctx, pod.Namespace, ref.Name); err == nil {
			if value, ok = m.Data[ref.Key]; !ok {
				err = &objects.Missing{Ref: objects.Ref{Kind: api.ConfigMaps, Namespace: pod.Namespace, Name: ref.Name}, Key: ref.Key}
			}
		}
		if err != nil {
			return "", false, unlessOptional(err, ref.Optional)
		}
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		var s *corev1.Secret
		if s, err = b.Secret(ctx, pod.Namespace, ref.Name); err == nil {
			var data []byte
			if data, ok = s.Data[ref.Key]; !ok {
				err = &objects.Missing{Ref: objects.Ref{Kind: api.Secrets, Namespace: pod.Namespace, Name: ref.Name}, Key: ref.Key}
			}
			value = string(data)
		}
		if err != nil {
			return "", false, unlessOptional(err, ref.Optional)
		}
	default:
		err = errors.New("the source of an env is not supported")
	}
	return value, err == nil, err
}

// expand fills in $(NAME) for the names in values, and turns $$ into $. A reference to a name that
// is not there stays as it is written.
func expand(s string, values map[string]string) string {
	return expandBy(s, func(name string) string {
		if v, ok := values[name]; ok {
			return v
		}
		return "$(" + name + ")"
	})
}

// expandKnown is expand for a path. An unknown name is an error, because it would become a directory's name.
func expandKnown(s string, values map[string]string) (string, error) {
	var missing []string
	out := expandBy(s, func(name string) string {
		v, ok := values[name]
		if !ok {
			missing = append(missing, name)
		}
		return v
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("missing value for %q", strings.Join(missing, ", "))
	}
	return out, nil
}

func expandBy(s string, value func(name string) string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			out.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(s[i+2:], ')')
			if end < 0 {
				out.WriteString("$(")
				i++
				continue
			}
			out.WriteString(value(s[i+2 : i+2+end]))
			i += 2 + end
		default:
			out.WriteByte('$')
			out.WriteByte(s[i+1])
			i++
		}
	}
	return out.String()
}
