package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"minik8s/internal/clock"
)

func (s *Server) listen(ctx context.Context) ([]net.Listener, error) {
	var out []net.Listener
	if s.cfg.Listener != nil {
		out = append(out, s.secured(s.cfg.Listener))
	}
	if s.cfg.Socket != "" {
		l, err := listenSocket(ctx, s.cfg.Socket)
		if err != nil {
			return nil, errors.Join(err, closeAll(out))
		}
		out = append(out, l)
	}
	return out, nil
}

// secured is a port with the server's certificate, where clients may show theirs.
func (s *Server) secured(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		Time:           clock.Now,
		GetCertificate: s.cfg.Cert.ForServer, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: s.cfg.ClientCA,
		NextProtos: []string{"h2", "http/1.1"},
	})
}

func closeAll(ls []net.Listener) (err error) {
	for _, l := range ls {
		err = errors.Join(err, l.Close())
	}
	return err
}

// listenSocket opens the unix socket, for root alone. It replaces the socket of a killed daemon: the lock on the data
// directory ensures that no other daemon serves it.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the API's unix socket: %w", err)
	}
	var lc net.ListenConfig
	old := syscall.Umask(0o177) // others must not be able to connect, not even for a moment
	l, err := lc.Listen(ctx, "unix", path)
	syscall.Umask(old)
	if err != nil {
		if strings.Contains(err.Error(), "invalid argument") && len(path) > 107 {
			return nil, fmt.Errorf("the API's unix socket: %s has %d bytes, a socket's path may have 107: choose a shorter --data-dir", path, len(path))
		}
		return nil, fmt.Errorf("the API's unix socket: %w", err)
	}
	return l, nil
}
