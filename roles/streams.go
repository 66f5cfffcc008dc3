package roles

import (
	"context"
	"io"

	"minik8s/internal/apiserver/streaming"
	"minik8s/internal/kubelet/cri"
)

// Connectable implements nodes.Agents.
func (n nodeAgents) Connectable(node, namespace, pod, container string) error {
	if err := n.own(node); err != nil {
		return err
	}
	return n.d.kubelet.Load().Connectable(namespace, pod, container)
}

// Exec implements nodes.Agents.
func (n nodeAgents) Exec(ctx context.Context, node, namespace, pod, container string, command []string, s streaming.Streams) (int32, error) {
	if err := n.own(node); err != nil {
		return 0, err
	}
	return n.d.kubelet.Load().Exec(ctx, namespace, pod, container, cri.ExecConfig{Command: command, TTY: s.TTY,
		Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Resize: s.Resize})
}

// Attach implements nodes.Agents.
func (n nodeAgents) Attach(ctx context.Context, node, namespace, pod, container string, s streaming.Streams) error {
	if err := n.own(node); err != nil {
		return err
	}
	return n.d.kubelet.Load().Attach(ctx, namespace, pod, container,
		cri.AttachConfig{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Resize: s.Resize})
}

// PortForward implements nodes.Agents.
func (n nodeAgents) PortForward(ctx context.Context, node, namespace, pod string, port int32) (io.ReadWriteCloser, error) {
	if err := n.own(node); err != nil {
		return nil, err
	}
	return n.d.kubelet.Load().PortForward(ctx, namespace, pod, port)
}

// Dial implements nodes.Agents.
func (n nodeAgents) Dial(ctx context.Context, node, namespace, pod string, port int32) (io.ReadWriteCloser, error) {
	if err := n.own(node); err != nil {
		return nil, err
	}
	return n.d.kubelet.Load().Dial(ctx, namespace, pod, port)
}
