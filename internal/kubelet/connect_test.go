package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestConnectingToContainers(t *testing.T) {
	b := newBed(t)
	b.rt.Hooks.Exec = func(_ context.Context, c cri.Container, cfg cri.ExecConfig) (int32, error) {
		if cfg.Command[0] == "nosuch" {
			return 0, &cri.StartError{Message: `exec: "nosuch": executable file not found in $PATH`, ExitCode: 127}
		}
		fmt.Fprint(cfg.Stdout, c.Name, " ", cfg.Command)
		return 5, nil
	}
	b.rt.Hooks.Attach = func(_ context.Context, c cri.Container, cfg cri.AttachConfig) error {
		_, err := fmt.Fprint(cfg.Stdout, "attached to ", c.Name)
		return err
	}
	b.rt.Hooks.PortForward = func(_ context.Context, _ string, port int32) (io.ReadWriteCloser, error) {
		near, far := net.Pipe()
		go func() { fmt.Fprint(far, "port ", port); far.Close() }()
		return near, nil
	}
	b.start()
	b.create(plantest.Pod("one"))
	b.create(plantest.Pod("two", func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "app", Image: "app:1"})
	}))
	b.create(plantest.Pod("stuck", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "missing:1", corev1.PullNever
	}))
	b.create(plantest.Pod("done", plantest.RestartPolicy(corev1.RestartPolicyNever)))
	b.api.await(t, "one", "running", running)
	b.api.await(t, "two", "running", running)
	done := b.api.await(t, "done", "running", running)
	b.rt.Exit(string(done.UID), "web", 3, false)
	b.api.await(t, "done", "failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	b.api.await(t, "stuck", "waiting", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "ErrImageNeverPull"
	})
	// What the kubelet has written it knows a moment later, when the API's answer is there.
	eventually(t, "known to wait for its image", func() error {
		if err := b.k.Connectable("default", "stuck", ""); !strings.Contains(err.Error(), "ErrImageNeverPull") {
			return err
		}
		return nil
	})

	var out strings.Builder
	code, err := b.k.Exec(t.Context(), "default", "one", "", cri.ExecConfig{Command: []string{"ls"}, Stdout: &out})
	if code != 5 || err != nil || out.String() != "web [ls]" {
		t.Errorf("exec: %d, %v, %q", code, err, out.String())
	}
	out.Reset()
	if err := b.k.Attach(t.Context(), "default", "two", "app", cri.AttachConfig{Stdout: &out}); err != nil || out.String() != "attached to app" {
		t.Errorf("attach: %v, %q", err, out.String())
	}
	conn, err := b.k.PortForward(t.Context(), "default", "one", 80)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); string(text) != "port 80" {
		t.Errorf("port-forward: %q, %v", text, err)
	}

	for _, x := range []struct {
		pod, container, says string
		is                   func(error) bool
	}{
		{"nobody", "", `pods "nobody" not found`, apierrors.IsNotFound},
		{"two", "", "a container name must be specified for pod two, choose one of: [web app]", apierrors.IsBadRequest},
		{"two", "db", "container db is not valid for pod two", apierrors.IsBadRequest},
		{"stuck", "", `container "web" in pod "stuck" is not running: it waits to start: ErrImageNeverPull`, apierrors.IsBadRequest},
		{"done", "", `container "web" in pod "done" is not running: it has ended with exit code 3`, apierrors.IsBadRequest},
	} {
		_, exec := b.k.Exec(t.Context(), "default", x.pod, x.container, cri.ExecConfig{Command: []string{"ls"}})
		attach := b.k.Attach(t.Context(), "default", x.pod, x.container, cri.AttachConfig{})
		for _, err := range []error{exec, attach, b.k.Connectable("default", x.pod, x.container)} {
			if err == nil || !x.is(err) || err.Error() != x.says {
				t.Errorf("%s/%s: %v; want %s", x.pod, x.container, err, x.says)
			}
		}
	}
	_, err = b.k.Exec(t.Context(), "default", "one", "", cri.ExecConfig{Command: []string{"nosuch"}})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `exec: "nosuch": executable file not found in $PATH`) {
		t.Errorf("nosuch: %v", err)
	}
	if _, err := b.k.PortForward(t.Context(), "default", "nobody", 80); !apierrors.IsNotFound(err) {
		t.Errorf("a port of nobody's: %v", err)
	}
}
