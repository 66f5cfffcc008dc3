package kubelet

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// environment is the container's env, in order, with references to earlier variables filled in.
func (k *Kubelet) environment(_ context.Context, pod *corev1.Pod, c *corev1.Container, sandbox *cri.Sandbox) ([]cri.EnvVar, error) {
	values := map[string]string{}
	var out []cri.EnvVar
	set := func(name, value string) {
		if _, again := values[name]; again { // the last one wins, in the first one's place
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
	if len(c.EnvFrom) > 0 { // ConfigMaps and Secrets are filled in here, before env
		return nil, fmt.Errorf("envFrom is not supported yet")
	}
	for i := range c.Env {
		e := &c.Env[i]
		value := expand(e.Value, values)
		if e.ValueFrom != nil {
			var err error
			if value, err = k.valueFrom(pod, e, sandbox); err != nil {
				return nil, err
			}
		}
		set(e.Name, value)
	}
	if _, ok := values["HOSTNAME"]; !ok {
		set("HOSTNAME", k.hostnameOf(pod))
	}
	return out, nil
}

// valueFrom is the value of a variable that names a source.
func (k *Kubelet) valueFrom(pod *corev1.Pod, e *corev1.EnvVar, sandbox *cri.Sandbox) (string, error) {
	switch from := e.ValueFrom; {
	case from.FieldRef != nil:
		return k.fieldOf(pod, from.FieldRef.FieldPath, sandbox)
	default: // resourceFieldRef, configMapKeyRef, secretKeyRef
		return "", fmt.Errorf("the source of env %s is not supported yet", e.Name)
	}
}

// fieldOf is a field of the pod, as fieldRef names it.
func (k *Kubelet) fieldOf(pod *corev1.Pod, path string, sandbox *cri.Sandbox) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return k.cfg.NodeIP.String(), nil
	case "status.podIP", "status.podIPs":
		var ips []string
		if sandbox != nil {
			for _, a := range sandbox.Addresses {
				ips = append(ips, a.String())
			}
		}
		if path == "status.podIP" && len(ips) > 1 {
			ips = ips[:1]
		}
		return strings.Join(ips, ","), nil
	}
	for prefix, from := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			if key, ok = strings.CutSuffix(key, "']"); ok {
				return from[key], nil
			}
		}
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

// expand fills in $(NAME) for the names in values, and turns $$ into $. A reference to a name that
// is not there stays as it is written.
func expand(s string, values map[string]string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(s[i+2:], ')')
			if end < 0 {
				b.WriteString("$(")
				i++
				continue
			}
			name := s[i+2 : i+2+end]
			if v, ok := values[name]; ok {
				b.WriteString(v)
			} else {
				b.WriteString("$(" + name + ")")
			}
			i += 2 + end
		default:
			b.WriteByte('$')
			b.WriteByte(s[i+1])
			i++
		}
	}
	return b.String()
}
