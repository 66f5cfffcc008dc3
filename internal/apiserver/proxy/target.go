package proxy

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Target is the object, scheme and port that a request goes to, as they stand in its path.
type Target struct {
	Scheme, Name string
	Port         string // a number or, for a Service, also a name; empty: not given

	kind, id string // for errors
}

// ParseTarget reads NAME, NAME:PORT or SCHEME:NAME:PORT; the scheme and the port may be empty. kind is the object's, for
// errors. The error is 400.
func ParseTarget(kind, id string) (Target, error) {
	t := Target{Scheme: "http", kind: kind, id: id}
	switch parts := strings.Split(id, ":"); len(parts) {
	case 1:
		t.Name = parts[0]
	case 2:
		t.Name, t.Port = parts[0], parts[1]
	case 3:
		if parts[0] != "" {
			t.Scheme = parts[0]
		}
		t.Name, t.Port = parts[1], parts[2]
	}
	if t.Name == "" || t.Scheme != "http" && t.Scheme != "https" {
		return Target{}, t.bad()
	}
	return t, nil
}

func (t Target) bad() error {
	return apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q: it is NAME, NAME:PORT or SCHEME:NAME:PORT, "+
		"with http or https, and the port as a number (a service's also by its name)", t.kind, t.id))
}

// Number returns the port as a number; 0 if it is not given. The error is 400.
func (t Target) Number() (int32, error) {
	if t.Port == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(t.Port, 10, 16)
	if err != nil || n == 0 {
		return 0, t.bad()
	}
	return int32(n), nil
}

// OfPod returns the given port, else the first that the pod's containers declare, else the scheme's default. The error
// is 400.
func (t Target) OfPod(pod *corev1.Pod) (int32, error) {
	if n, err := t.Number(); n != 0 || err != nil {
		return n, err
	}
	for i := range pod.Spec.Containers {
		if ports := pod.Spec.Containers[i].Ports; len(ports) > 0 {
			return ports[0].ContainerPort, nil
		}
	}
	if t.Scheme == "https" {
		return 443, nil
	}
	return 80, nil
}
