package kubelet

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
	// RandomHostPortsAnnotation, "true" on a pod, asks for a free port of the node for each
	// containerPort that names none.
	RandomHostPortsAnnotation = "minik8s.io/random-host-ports"
	// HostPortsAnnotation has the chosen ports: "80:40123/TCP,9000:40124/UDP", the container's port first.
	HostPortsAnnotation = "minik8s.io/host-ports"
)

// hostPorts are the ports picked for pods of this node.
type hostPorts struct {
	mu     sync.Mutex
	picked map[int32]types.UID
}

func (h *hostPorts) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.picked = map[int32]types.UID{}
}

func (h *hostPorts) free(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for port, owner := range h.picked {
		if owner == uid {
			delete(h.picked, port)
		}
	}
}

// take records that uid has port.
func (h *hostPorts) take(port int32, uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.picked[port] = uid
}

// pick finds a port on which nothing listens and that no other pod has.
func (h *hostPorts) pick(protocol corev1.Protocol, uid types.UID) (int32, error) {
	for range 100 {
		port, err := freePort(protocol)
		if err != nil {
			return 0, err
		}
		h.mu.Lock()
		_, taken := h.picked[port]
		if !taken {
			h.picked[port] = uid
		}
		h.mu.Unlock()
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

// hostPortsOf returns the pod's host ports. Random ports are written to the pod's annotation before they are used, so
// that they stay the same after any failure.
func (k *Kubelet) hostPortsOf(ctx context.Context, pod *corev1.Pod) ([]cri.HostPort, error) {
	if pod.Spec.HostNetwork {
		return nil, nil
	}
	random := k.cfg.RandomHostPorts || pod.Annotations[RandomHostPortsAnnotation] == "true"
	known := parseHostPorts(pod.Annotations[HostPortsAnnotation])
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
					if port, err = k.ports.pick(placement.Protocol(p), pod.UID); err != nil {
						return nil, err
					}
					fresh = true
				}
				k.ports.take(port, pod.UID)
				forward.HostPort = port
				shown = append(shown, fmt.Sprintf("%d:%d/%s", p.ContainerPort, port, forward.Protocol))
			}
			out = append(out, forward)
		}
	}
	if fresh {
		if err := k.annotate(ctx, pod, HostPortsAnnotation, strings.Join(shown, ",")); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (k *Kubelet) annotate(ctx context.Context, pod *corev1.Pod, key, value string) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	at := client.Key{Kind: api.Pods, Namespace: pod.Namespace, Name: pod.Name}
	// A kubelet may write only the status of its pods; annotations are written with it.
	_, err = k.client.Patch(ctx, at, client.Patch{Type: types.MergePatchType, Data: data}, client.WriteOptions{Subresource: "status"})
	return err
}

// parseHostPorts reads the annotation: "80/TCP" to the node's port.
func parseHostPorts(text string) map[string]int32 {
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
