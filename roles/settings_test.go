package roles

import (
	"strings"
	"testing"

	"minik8s/config"
	"minik8s/internal/membership"
)

// What a machine shares with the cluster is compared by name, each difference is named with what to do, and what only one of both
// has is no difference: a worker has fewer, and so has another version.
func TestSharedSettings(t *testing.T) {
	load := func(given map[string]string) membership.Shared {
		t.Helper()
		cfg, err := config.Load("", func(string) (string, bool) { return "", false }, nil, given)
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Shared()
	}
	master := load(nil)
	worker := load(map[string]string{"role": "worker", "server": "https://10.0.0.1:6443", "cluster-cidr": "10.1.0.0/16"})
	if err := master.Differ(worker); err != nil || worker["pod-network"] == "" {
		t.Error(err, worker)
	}
	if err := membership.Shared(nil).Differ(master); err != nil {
		t.Error(err)
	}
	err := master.Differ(load(map[string]string{"vxlan-port": "1", "service-cidr": "10.97.0.0/16", "lb-pool": "10.9.0.1"}))
	for _, want := range []string{"vxlan-port: it is 8472 in the cluster and 1 here: give --vxlan-port=8472", "--service-cidr=10.96.0.0/16", "lb-pool: it is empty in the cluster"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
