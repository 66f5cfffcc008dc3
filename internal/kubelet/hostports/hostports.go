package hostports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/placement"
	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
)

const (
	// RandomAnnotation, "true" on a pod, asks for a free port of the node for each
	// containerPort that names none.
	RandomAnnotation = "minik8s.io/random-host-ports"
	// Annotation has the chosen ports: "80:40123/TCP,9000:40124/UDP", the container's port first.
	Annotation = "minik8s.io/host-ports"
)

// Manager has the ports that were picked for pods of this node. Its methods are safe for concurrent use.
type Manager struct {
	client client.Interface
	all    bool

	mu     sync.Mutex
	picked map[int32]types.UID
}

// New makes a Manager that knows no pod. all: every pod gets random ports, also one without the annotation.
func New(c client.Interface, all bool) *Manager {
	return &Manager{client: c, all: all, picked: map[int32]types.UID{}}
}

// Reset forgets all pods.
func (m *Manager) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.picked = map[int32]types.UID{}
}

// Free forgets the ports of a pod.
func (m *Manager) Free(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for port, owner := range m.picked {
		if owner == uid {
			delete(m.picked, port)
		}
	}
}

// take records that uid has port.
func (m *Manager) take(port int32, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.picked[port] = uid
}

// pick finds a port on which nothing listens and that no other pod has.
func (m *Manager) pick(protocol corev1.Protocol, uid types.UID) (int32, error) {
	for range 100 {
		port, err := freePort(protocol)
		if err != nil {
			return 0, err
		}
		m.mu.Lock()
		_, taken := m.picked[port]
		if !taken {
			m.picked[port] = uid
		}
		m.mu.Unlock()
		if !taken {
			return port, nil
		}
	}
	return 0, errors.New("found no free port on the node")
}

// freePort asks the kernel for a port that is free now.
func freePort(protocol corev1.Protocol) (int32, error) {
	switch protocol {
	case corev1.ProtocolUDP:
		c, err := net.ListenUDP("udp", nil)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		return int32(c.LocalAddr().(*net.UDPAddr).Port), nil
	default:
		l, err := net.ListenTCP("tcp", nil)
		if err != nil {
			return 0, err
		}
		defer l.Close()
		return int32(l.Addr().(*net.TCPAddr).Port), nil
	}
}

// Of returns the pod's host ports; a pod on the host's network has none. Random ports are written to the pod's annotation before they are used, so
// that they stay the same after any failure.
func (m *Manager) Of(ctx context.Context, pod *corev1.Pod) ([]cri.HostPort, error) {
	if pod.Spec.HostNetwork {
		return nil, nil
	}
	random := m.all || pod.Annotations[RandomAnnotation] == "true"
	known := parse(pod.Annotations[Annotation])
	var out []cri.HostPort
	var shown []string
	fresh := false
	for _, c := range podspec.Containers(pod) {
		if podspec.InitContainer(pod, c.Name) != nil && !podspec.IsSidecar(c) {
			continue
		}
		for _, p := range c.Ports {
			forward := cri.HostPort{HostIP: p.HostIP, HostPort: p.HostPort, ContainerPort: p.ContainerPort, Protocol: string(placement.Protocol(p))}
			if p.HostPort == 0 {
				if !random {
					continue
				}
				key := fmt.Sprintf("%d/%s", p.ContainerPort, forward.Protocol)
				port, ok := known[key]
				if !ok {
					var err error
					if port, err = m.pick(placement.Protocol(p), pod.UID); err != nil {
						return nil, err
					}
					fresh = true
				}
				m.take(port, pod.UID)
				forward.HostPort = port
				shown = append(shown, fmt.Sprintf("%d:%d/%s", p.ContainerPort, port, forward.Protocol))
			}
			out = append(out, forward)
		}
	}
	if fresh {
		if err := m.annotate(ctx, pod, Annotation, strings.Join(shown, ",")); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (m *Manager) annotate(ctx context.Context, pod *corev1.Pod, key, value string) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	at := client.Key{Kind: api.Pods, Namespace: pod.Namespace, Name: pod.Name}
	// A kubelet may write only the status of its pods; annotations are written with it.
	_, err = m.client.Patch(ctx, at, client.Patch{Type: types.MergePatchType, Data: data}, client.WriteOptions{Subresource: "status"})
	return err
}

// parse reads the annotation: "80/TCP" to the node's port.
func parse(text string) map[string]int32 {
	out := map[string]int32{}
	for item := range strings.SplitSeq(text, ",") {
		ports, protocol, ok := strings.Cut(item, "/")
		inner, outer, ok2 := strings.Cut(ports, ":")
		n, err := strconv.ParseUint(outer, 10, 16)
		if ok && ok2 && err == nil {
			out[inner+"/"+protocol] = int32(n)
		}
	}
	return out
}
