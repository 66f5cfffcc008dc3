package sandbox

import "testing"

func TestAllowedSysctl(t *testing.T) {
	for key, want := range map[string]struct{ ordinary, hostNetwork bool }{
		"net.ipv4.ip_forward":    {true, false},
		"net/ipv4/ip_forward":    {true, false},
		"kernel.shm_rmid_forced": {true, true},
		"kernel.sem":             {true, true},
		"fs.mqueue.msg_max":      {true, true},
		"net.../kernel.panic":    {},
		"kernel.panic":           {},
		"vm.swappiness":          {},
	} {
		if got := allowedSysctl(Ordinary, key); got != want.ordinary {
			t.Errorf("%s in a pod with a network of its own: %v", key, got)
		}
		if got := allowedSysctl([]string{"ipc"}, key); got != want.hostNetwork {
			t.Errorf("%s in a pod on the host's network: %v", key, got)
		}
		if allowedSysctl(nil, key) {
			t.Errorf("%s in a pod without namespaces is allowed", key)
		}
	}
}
