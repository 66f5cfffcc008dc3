package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// Connectable returns the error that Exec and Attach would return because the container does not run; nil if it runs.
// container may be empty if the pod has only one.
func (m *Manager) Connectable(namespace, pod, container string) error {
	_, err := m.runningIn(namespace, pod, container)
	return err
}

// Exec runs a command in a container of a pod on this node, and returns its exit code when it has ended. The end of
// ctx kills it. Errors are API errors (NotFound, BadRequest).
func (m *Manager) Exec(ctx context.Context, namespace, pod, container string, cfg cri.ExecConfig) (int32, error) {
	c, err := m.runningIn(namespace, pod, container)
	if err != nil {
		return 0, err
	}
	code, err := m.cfg.Runtime.Exec(ctx, c.ID, cfg)
	var start *cri.StartError
	switch {
	case errors.Is(err, cri.ErrNotRunning):
		return 0, notRunning(c.Name, pod, "it has ended")
	case errors.As(err, &start):
		return 0, apierrors.NewInternalError(fmt.Errorf("error executing command in container: %s", start.Message))
	}
	return code, err
}

// Attach connects to the streams of a running container until it exits or ctx ends.
func (m *Manager) Attach(ctx context.Context, namespace, pod, container string, cfg cri.AttachConfig) error {
	c, err := m.runningIn(namespace, pod, container)
	if err != nil {
		return err
	}
	err = m.cfg.Runtime.Attach(ctx, c.ID, cfg)
	if errors.Is(err, cri.ErrNotRunning) {
		return notRunning(c.Name, pod, "it has ended")
	}
	return err
}

// PortForward connects to a port inside a pod on this node. The caller closes the connection.
func (m *Manager) PortForward(ctx context.Context, namespace, pod string, port int32) (io.ReadWriteCloser, error) {
	s, err := m.get(namespace, pod)
	if err != nil {
		return nil, err
	}
	return m.cfg.Runtime.PortForward(ctx, string(s.pod.UID), port)
}

// Dial connects from within the network of a pod on this node, as net.Dialer does.
func (m *Manager) Dial(ctx context.Context, namespace, pod, network, address string) (net.Conn, error) {
	s, err := m.get(namespace, pod)
	if err != nil {
		return nil, err
	}
	return m.cfg.Runtime.Dial(ctx, string(s.pod.UID), network, address)
}

// runningIn finds a container that runs.
func (m *Manager) runningIn(namespace, pod, name string) (cri.Container, error) {
	s, err := m.get(namespace, pod)
	if err != nil {
		return cri.Container{}, err
	}
	if name, err = podspec.ChooseContainer(s.pod, name); err != nil {
		return cri.Container{}, err
	}
	c, there := s.containers[name]
	st := podspec.ContainerStatus(&s.pod.Status, name)
	switch {
	case there && c.State == cri.Running:
		return c, nil
	case there && c.State == cri.Exited:
		return c, notRunning(name, pod, fmt.Sprintf("it has ended with exit code %d", c.ExitCode))
	case st != nil && st.State.Terminated != nil:
		return c, notRunning(name, pod, fmt.Sprintf("it has ended with exit code %d", st.State.Terminated.ExitCode))
	case st != nil && st.State.Waiting != nil && st.State.Waiting.Reason != "":
		return c, notRunning(name, pod, "it waits to start: "+reasonText(st.State.Waiting.Reason))
	}
	return c, notRunning(name, pod, "it waits to start: ContainerCreating")
}

func notRunning(container, pod, why string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("container %q in pod %q is not running: %s", container, pod, why))
}
