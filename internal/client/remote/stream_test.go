package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/apiserver"
	"minik8s/internal/certs"
	"minik8s/internal/channels"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/server/servertest"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// programs are those of node n1: they know three commands, and there is an echo on every pod's port 7.
type programs struct{ servertest.NoPods }

func (programs) Connectable(_, _, container string) error {
	if container == "none" {
		return apierrors.NewBadRequest("container none is not valid for pod web")
	}
	return nil
}

func (programs) Exec(_ context.Context, ns, pod, container string, s cri.ExecConfig) (int32, error) {
	switch s.Command[0] {
	case "cat":
		_, err := io.Copy(s.Stdout, s.Stdin)
		return 0, err
	case "say":
		fmt.Fprint(s.Stdout, strings.Join([]string{ns, pod, container, strings.Join(s.Command[1:], "|")}, " "))
		if s.Stderr != nil {
			fmt.Fprint(s.Stderr, "aside")
		}
		return 42, nil
	case "size":
		size := <-s.Resize
		fmt.Fprint(s.Stdout, size.Width, size.Height, s.TTY)
		return 0, nil
	}
	return 0, apierrors.NewInternalError(errors.New("no such command"))
}

func (programs) Attach(_ context.Context, _, _, _ string, s cri.AttachConfig) error {
	in, err := io.ReadAll(s.Stdin)
	fmt.Fprintf(s.Stdout, "got %s", in)
	return err
}

func (programs) PortForward(_ context.Context, _, _ string, port int32) (io.ReadWriteCloser, error) {
	if port != 7 {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	go func() {
		io.Copy(far, far)
		far.Close()
	}()
	return near, nil
}

// streamServer is an API with pod web on node n1, and its clients: root's on the socket, the admin's over
// TLS, a node's.
func streamServer(t *testing.T) map[string]*remote.Client {
	t.Helper()
	dir := t.TempDir()
	ca, err := certs.OpenAuthority(dir, "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Server(dir, "apiserver", []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	socket := filepath.Join(dir, "api.sock")
	srv := apiserver.New(apiserver.Config{Registry: registrytest.New(t), Socket: socket, Listener: l, Cert: certs.Use(cert), ClientCA: ca.Pool(),
		Kubelets: servertest.Kubelets(t, ca, programs{}, "n1"), Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Run(ctx, func() { close(ready) }); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-ready
	out := map[string]*remote.Client{}
	add := func(name string, cfg remote.Config) {
		c, err := remote.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		out[name] = c
	}
	add("root", remote.Config{Socket: socket})
	for name, who := range map[string][]string{"admin": {"kubernetes-admin", registry.GroupMasters},
		"node": {"system:node:n1", registry.GroupNodes}, "somebody": {"somebody"}} {
		own, err := ca.Client(t.TempDir(), name, who[0], who[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		add(name, remote.Config{Server: "https://" + address, CA: ca.Cert, Cert: own.Cert, Key: own.Key})
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "web:1"}}}}
	if _, err := out["root"].Create(t.Context(), pod, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStreams(t *testing.T) {
	clients := streamServer(t)
	for _, name := range []string{"root", "admin"} {
		t.Run(name, func(t *testing.T) {
			c, ctx := clients[name], t.Context()
			var out, errOut bytes.Buffer
			err := c.Exec(ctx, "default", "web", "c", []string{"say", "a b", "", "ü&="}, remote.Streams{Stdout: &out, Stderr: &errOut})
			var exit *remote.ExitError
			if !errors.As(err, &exit) || exit.Code != 42 || out.String() != "default web c a b||ü&=" || errOut.String() != "aside" {
				t.Errorf("say: %v, %q, %q", err, out.String(), errOut.String())
			}
			big := bytes.Repeat([]byte("0123456789abcdef"), 10<<16) // 10 MiB
			out.Reset()
			if err := c.Exec(ctx, "default", "web", "", []string{"cat"}, remote.Streams{Stdin: bytes.NewReader(big), Stdout: &out}); err != nil || !bytes.Equal(out.Bytes(), big) {
				t.Errorf("cat: %v, %d of %d bytes", err, out.Len(), len(big))
			}
			out.Reset()
			sizes := make(chan channels.TermSize, 1)
			sizes <- channels.TermSize{Width: 80, Height: 25}
			if err := c.Exec(ctx, "default", "web", "", []string{"size"}, remote.Streams{TTY: true, Stdout: &out, Resize: sizes}); err != nil || out.String() != "80 25 true" {
				t.Errorf("size: %v, %q", err, out.String())
			}
			out.Reset()
			if err := c.Attach(ctx, "default", "web", "", remote.Streams{Stdin: strings.NewReader("hello"), Stdout: &out}); err != nil || out.String() != "got hello" {
				t.Errorf("attach: %v, %q", err, out.String())
			}
			err = c.Exec(ctx, "default", "web", "", []string{"nosuch"}, remote.Streams{Stdout: &out})
			if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "no such command") {
				t.Errorf("nosuch: %v", err)
			}
			cut, cancel := context.WithCancel(ctx)
			cancel()
			if err := c.Exec(cut, "default", "web", "", []string{"cat"}, remote.Streams{Stdout: &out}); !errors.Is(err, context.Canceled) {
				t.Errorf("cut off: %v", err)
			}
		})
	}
}

func TestStreamsThatAreRefused(t *testing.T) {
	clients, ctx := streamServer(t), t.Context()
	say := func(who, pod, container string, command ...string) error {
		return clients[who].Exec(ctx, "default", pod, container, command, remote.Streams{Stdout: io.Discard})
	}
	if err := say("root", "nobody", "", "say"); !apierrors.IsNotFound(err) {
		t.Errorf("a pod that is not there: %v", err)
	}
	for what, err := range map[string]error{
		"a container that is not there": say("root", "web", "none", "say"),
		"no command":                    say("root", "web", "c"),
		"no streams":                    clients["root"].Exec(ctx, "default", "web", "c", []string{"say"}, remote.Streams{}),
	} {
		if !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, who := range []string{"node", "somebody"} {
		_, err := clients[who].PortForward(ctx, "default", "web")
		for what, err := range map[string]error{"exec": say(who, "web", "c", "say"), "port-forward": err,
			"attach": clients[who].Attach(ctx, "default", "web", "c", remote.Streams{Stdout: io.Discard})} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s by %s: %v; want Forbidden", what, who, err)
			}
		}
	}
}

func TestPortForward(t *testing.T) {
	clients := streamServer(t)
	for _, name := range []string{"root", "admin"} {
		ports, err := clients[name].PortForward(t.Context(), "default", "web")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			near, far := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- ports.Forward(far, 7) }()
			if _, err := io.WriteString(near, "hello"); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 5)
			if _, err := io.ReadFull(near, got); err != nil || string(got) != "hello" {
				t.Errorf("%q, %v", got, err)
			}
			near.Close()
			<-done
		}
		near, far := net.Pipe()
		if err := ports.Forward(far, 8); err == nil || err.Error() != "error forwarding port 8: connection refused" {
			t.Errorf("a port where nobody listens: %v", err)
		}
		near.Close()
		ports.Close()
		<-ports.Done()
	}
}
