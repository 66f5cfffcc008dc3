package ctl

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"minik8s/internal/client/remote"
)

func (p *program) portForwardCommand() *cli.Command {
	return &cli.Command{
		Name: "port-forward", Usage: "make ports of a pod ports of this machine", ArgsUsage: "POD [LOCAL:]PORT...",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "address", Value: "127.0.0.1", Usage: "the `ADDRESS` of this machine to listen on"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() < 2 {
				return usagef("port-forward POD [LOCAL:]PORT...: which pod, and which ports?")
			}
			var pairs []portPair
			for _, arg := range c.Args().Tail() {
				pair, err := parsePortPair(arg)
				if err != nil {
					return err
				}
				pairs = append(pairs, pair)
			}
			s, err := p.session(c)
			if err != nil {
				return err
			}
			return s.portForward(c, pairs)
		},
	}
}

// portPair is a port of this machine (0: any that is free) and one of the pod.
type portPair struct{ local, remote int }

func parsePortPair(arg string) (portPair, error) {
	local, far, both := strings.Cut(arg, ":")
	if !both {
		far = local
	}
	if local == "" {
		local = "0"
	}
	l, lerr := strconv.ParseUint(local, 10, 16)
	r, rerr := strconv.ParseUint(far, 10, 16)
	if lerr != nil || rerr != nil || r == 0 {
		return portPair{}, usagef("%q is no [LOCAL:]PORT: 8080, 8080:80 or :80 (any free port)", arg)
	}
	return portPair{int(l), int(r)}, nil
}

func (s *session) portForward(c *cli.Context, pairs []portPair) error {
	pod, err := s.pod(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	ports, err := s.api.PortForward(c.Context, pod.Namespace, pod.Name)
	if err != nil {
		return err
	}
	defer ports.Close()
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	for _, pair := range pairs {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(c.String("address"), strconv.Itoa(pair.local)))
		if err != nil {
			return failf(codeFailed, "port %d of this machine: %v", pair.local, err)
		}
		defer l.Close()
		s.say("Forwarding from %s -> %d", l.Addr(), pair.remote)
		go s.serve(l, ports, pair.remote)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-ports.Done():
		return failf(codeFailed, "the connection to pod %s was lost", pod.Name)
	}
}

// serve forwards each connection until the listener is closed.
func (s *session) serve(l net.Listener, ports *remote.Ports, port int) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.note("%v", err)
			continue
		}
		go func() {
			if err := ports.Forward(conn, port); err != nil {
				s.note("%s", err)
			}
		}()
	}
}
