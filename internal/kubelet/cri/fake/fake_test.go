package fake

import (
	"net/netip"
	"testing"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/cri/critest"
)

func TestContract(t *testing.T) {
	critest.Run(t, func(*testing.T) *critest.Harness {
		r := New("app", "docker.io/library/app:latest")
		return &critest.Harness{
			Runtime: r, ShortImage: "app", FullImage: "docker.io/library/app:latest",
			Sandbox: func(name string) cri.SandboxConfig {
				return cri.SandboxConfig{PodUID: "uid-" + name, PodNamespace: "default", PodName: name}
			},
			Container: func(pod, name string) cri.ContainerConfig {
				return cri.ContainerConfig{PodUID: "uid-" + pod, PodNamespace: "default", PodName: pod, Name: name, Image: "app"}
			},
			Restart: func(*testing.T) cri.Runtime {
				r.Restart()
				return r
			},
		}
	})
}

func TestAddressesAreNeverGivenTwice(t *testing.T) {
	r := New("app")
	held := map[netip.Addr]string{}
	for range 3 {
		for i := range 50 {
			uid := string(rune('a' + i))
			s, err := r.EnsureSandbox(t.Context(), cri.SandboxConfig{PodUID: uid})
			if err != nil {
				t.Fatal(err)
			}
			if who, ok := held[s.Addresses[0]]; ok {
				t.Fatalf("%s is given to %s and to %s", s.Addresses[0], who, uid)
			}
			held[s.Addresses[0]] = uid
		}
		for a, uid := range held {
			if err := r.RemoveSandbox(t.Context(), uid); err != nil {
				t.Fatal(err)
			}
			delete(held, a)
		}
	}
	if len(r.Violations()) > 0 {
		t.Error(r.Violations())
	}
}
