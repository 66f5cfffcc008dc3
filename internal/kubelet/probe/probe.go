package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/kubelet/cri"
)

// Failure is a negative answer.
type Failure struct{ Message string }

func (f *Failure) Error() string { return f.Message }

func failed(format string, args ...any) error { return &Failure{fmt.Sprintf(format, args...)} }

// Execer runs commands in containers: cri.Runtime.
type Execer interface {
	Exec(ctx context.Context, id string, cfg cri.ExecConfig) (exit int32, err error)
}

// Target is the container to probe.
type Target struct {
	Runtime Execer
	ID      string
	// IP of its pod; empty: it has none, so network probes cannot be made.
	IP   string
	Spec *corev1.Container
}

// maxOutput is how many bytes of an answer are kept for messages.
const maxOutput = 10 << 10

// Ask makes one probe. It returns nil for success, a *Failure for a negative answer, and another error if the probe
// could not be made. ctx bounds it.
func Ask(ctx context.Context, t Target, h *corev1.ProbeHandler) error {
	switch {
	case h.Exec != nil:
		return t.command(ctx, h.Exec.Command)
	case h.HTTPGet != nil:
		return t.httpGet(ctx, h.HTTPGet)
	case h.TCPSocket != nil:
		addr, err := t.address(h.TCPSocket.Host, h.TCPSocket.Port)
		if err != nil {
			return err
		}
		return dial(ctx, addr)
	case h.GRPC != nil:
		service, mode := "", corev1.GRPCProbeModePlaintext
		if h.GRPC.Service != nil {
			service = *h.GRPC.Service
		}
		if h.GRPC.Mode != nil {
			mode = *h.GRPC.Mode
		}
		addr, err := t.address("", intstr.FromInt32(h.GRPC.Port))
		if err != nil {
			return err
		}
		return grpcHealth(ctx, addr, service, mode)
	}
	return errors.New("the probe names nothing to be asked")
}

// Call carries out a lifecycle hook.
func Call(ctx context.Context, t Target, h *corev1.LifecycleHandler) error {
	switch {
	case h.Exec != nil:
		return t.command(ctx, h.Exec.Command)
	case h.HTTPGet != nil:
		return t.httpGet(ctx, h.HTTPGet)
	case h.TCPSocket != nil: // Kubernetes accepts and ignores it
		return nil
	case h.Sleep != nil:
		timer := time.NewTimer(time.Duration(h.Sleep.Seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the hook names nothing to be done")
}

// command runs a command in the container; its exit code is the answer.
func (t Target) command(ctx context.Context, command []string) error {
	out := &head{}
	code, err := t.Runtime.Exec(ctx, t.ID, cri.ExecConfig{Command: command, Stdout: out, Stderr: out})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed("command timed out: %q", strings.Join(command, " "))
	case err != nil:
		return err
	case code != 0 && out.text() == "":
		return failed("command %q exited with %d", strings.Join(command, " "), code)
	case code != 0:
		return failed("%s", out.text())
	}
	return nil
}

func dial(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return failed("%v", err)
	}
	return conn.Close()
}

// address is host, or else the pod's IP, and the port, by its number or its name in the container.
func (t Target) address(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = t.IP
	}
	if host == "" {
		return "", errors.New("the pod has no address yet")
	}
	n := int(port.IntVal)
	if port.Type == intstr.String {
		n = 0
		for _, p := range t.Spec.Ports {
			if p.Name == port.StrVal {
				n = int(p.ContainerPort)
			}
		}
		if n == 0 {
			var err error
			if n, err = strconv.Atoi(port.StrVal); err != nil {
				return "", fmt.Errorf("the container has no port named %q", port.StrVal)
			}
		}
	}
	if n <= 0 || n > 65535 {
		return "", fmt.Errorf("%d is no port", n)
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}

// head keeps the beginning of what is written to it, from several goroutines.
type head struct {
	mu   sync.Mutex
	data []byte
}

func (h *head) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.data)
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.data = append(h.data, p[:min(len(p), maxOutput-len(h.data))]...)
	return len(p), nil
}
