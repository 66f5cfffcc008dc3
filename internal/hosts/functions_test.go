package hosts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/hosts"
)

// A call on a master that does not lead is passed on to the one that does. When that one is lost, with the registry that had the
// function's image, another one leads and makes the image again.
func TestFunctionsOfSeveralMasters(t *testing.T) {
	base, err := filepath.Abs("../../build/functions/python.tar")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(base); err != nil {
		t.Skip("no image with Python: ", err)
	}
	lab := newLab(t)
	flags := []string{"--function-base", base, "--node-grace-period=4s", "--node-unknown-period=4s", "--heartbeat-interval=1s"}
	var all []*hosts.Host
	for _, name := range []string{"m1", "m2", "m3"} {
		h, err := lab.Add(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	first, second, third := all[0], all[1], all[2]
	if err := first.Start(append([]string{"--role=master,worker"}, flags...)...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the master is ready", func() bool { return first.Ready(t.Context()) })
	for _, h := range []*hosts.Host{second, third} {
		var line string
		eventually(t, "a token", func() bool { line, err = first.Ctl("token", "create", "--role=master"); return err == nil })
		if err := h.Start(append(strings.Fields(line)[1:], flags...)...); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the master has joined", func() bool { return h.Ready(t.Context()) })
	}
	c, err := third.API()
	if err != nil {
		t.Fatal(err)
	}
	// The first instance is on the first master, so that no other one has the image.
	f := &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "says"}, Spec: minik8s.FunctionSpec{Source: "def run(arg):\n    return 'hello ' + arg\n", Address: minik8s.AddressAuto}}
	cordon := func(name string, off string) {
		t.Helper()
		eventually(t, "cordon", func() bool { _, err := third.Ctl(off, name); return err == nil })
	}
	cordon("m2", "cordon")
	cordon("m3", "cordon")
	if _, err := c.Create(t.Context(), f, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		eventually(t, "a call on "+h.Name, func() bool {
			out, err := h.Ctl("func", "call", "says", h.Name)
			return err == nil && strings.TrimSpace(out) == "hello "+h.Name
		})
	}
	images := func(h *hosts.Host) int {
		found, err := filepath.Glob(filepath.Join(h.Dir(), "registry/docker/registry/v2/repositories/functions/default/says/_manifests/revisions/sha256/*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if images(first) != 1 || images(second)+images(third) != 0 {
		t.Errorf("images: %d on the first master, %d and %d on the others", images(first), images(second), images(third))
	}
	service, err := client.Get[*corev1.Service](t.Context(), c, client.Key{Kind: api.Services, Namespace: "default", Name: "func-says"})
	if err != nil {
		t.Fatal(err)
	}

	cordon("m2", "uncordon")
	cordon("m3", "uncordon")
	if err := first.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*hosts.Host{second, third} {
		eventually(t, "a call on "+h.Name+" after the first master's death", func() bool {
			out, err := h.Ctl("func", "call", "says", h.Name)
			return err == nil && strings.TrimSpace(out) == "hello "+h.Name
		})
	}
	eventually(t, "the address leads to the masters that are left", func() bool {
		found, _, err := client.All[*discoveryv1.EndpointSlice](t.Context(), c, api.EndpointSlices, client.ListOptions{Namespace: "default"})
		if err != nil {
			return false
		}
		for _, s := range found {
			if s.Name == service.Name {
				return len(s.Endpoints) == 2
			}
		}
		return false
	})
	// Each of them has the image when its node asks for it, whether it leads or not: the leading one has made it, the other one makes it then.
	for i, h := range []*hosts.Host{second, third} {
		other := []*hosts.Host{third, second}[i]
		cordon(h.Name, "uncordon")
		cordon(other.Name, "cordon")
		pods := client.ListOptions{Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{minik8s.FunctionLabel: "says"})}
		if _, err := c.DeleteCollection(t.Context(), api.Pods, pods, nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an instance on "+h.Name, func() bool {
			if out, err := h.Ctl("func", "call", "says", "again"); err != nil || strings.TrimSpace(out) != "hello again" {
				return false
			}
			all, _, err := client.All[*corev1.Pod](t.Context(), c, api.Pods, pods)
			return err == nil && slices.ContainsFunc(all, func(p *corev1.Pod) bool {
				return p.Spec.NodeName == h.Name && p.Status.Phase == corev1.PodRunning
			})
		})
		if images(h) != 1 {
			t.Errorf("%s has %d images of the function", h.Name, images(h))
		}
	}
}
