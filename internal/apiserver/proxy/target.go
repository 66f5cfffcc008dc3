package proxy

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Target is the pod, scheme and port that a request goes to.
type Target struct {
	Scheme, Pod string
	Port        int32 // 0: not given
}

// ParseTarget reads NAME, NAME:PORT or SCHEME:NAME:PORT; the scheme and the port may be empty. The error is 400.
func ParseTarget(id string) (Target, error) {
	bad := func() (Target, error) {
		return Target{}, apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q: it is NAME, NAME:PORT or SCHEME:NAME:PORT, "+
			"with http or https and the number of a port", id))
	}
	t := Target{Scheme: "http"}
	port := ""
	switch parts := strings.Split(id, ":"); len(parts) {
	case 1:
		t.Pod = parts[0]
	case 2:
		t.Pod, port = parts[0], parts[1]
	case 3:
		if parts[0] != "" {
			t.Scheme = parts[0]
		}
		t.Pod, port = parts[1], parts[2]
	default:
		return bad()
	}
	if t.Pod == "" || t.Scheme != "http" && t.Scheme != "https" {
		return bad()
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return bad()
		}
		t.Port = int32(n)
	}
	return t, nil
}

// PortOf returns the given port, else the first that the pod's containers declare, else the scheme's default.
func (t Target) PortOf(pod *corev1.Pod) int32 {
	if t.Port != 0 {
		return t.Port
	}
	for i := range pod.Spec.Containers {
		if ports := pod.Spec.Containers[i].Ports; len(ports) > 0 {
			return ports[0].ContainerPort
		}
	}
	if t.Scheme == "https" {
		return 443
	}
	return 80
}
