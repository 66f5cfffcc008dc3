package stream

import (
	"context"
	"errors"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// PortPair is a port of this machine (0: any free one) and a port of the pod.
type PortPair struct{ Local, Remote int }

// Forward listens on an address of this machine and forwards connections to the pod, until ctx ends or the pod is lost.
func Forward(ctx context.Context, s *session.Session, pod *corev1.Pod, address string, pairs []PortPair) error {
	ports, err := s.API.PortForward(ctx, pod.Namespace, pod.Name)
	if err != nil {
		return err
	}
	defer ports.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, pair := range pairs {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(pair.Local)))
		if err != nil {
			return exit.Failf(exit.Failed, "port %d of this machine: %v", pair.Local, err)
		}
		defer l.Close()
		s.Say("Forwarding from %s -> %d", l.Addr(), pair.Remote)
		go serve(s.Console, l, ports, pair.Remote)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-ports.Done():
		return exit.Failf(exit.Failed, "the connection to pod %s was lost", pod.Name)
	}
}

// serve forwards each connection until the listener is closed.
func serve(c *console.Console, l net.Listener, ports *remote.Ports, port int) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			c.Note("%v", err)
			continue
		}
		go func() {
			if err := ports.Forward(conn, port); err != nil {
				c.Note("%s", err)
			}
		}()
	}
}
