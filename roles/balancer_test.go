package roles

import (
	"log/slog"
	"slices"
	"testing"

	"minik8s/config"
	"minik8s/internal/balancer"
)

// A worker says where its API leads in one form, whether or not the cluster's Nodes have arrived when it says so.
func TestKnownMastersAreAddresses(t *testing.T) {
	d := &Daemon{cfg: &config.Config{Server: "https://10.1.2.3:6443"}, balancer: balancer.New(balancer.Config{Log: slog.Default()})}
	if got := d.knownMasters(); !slices.Equal(got, []string{"10.1.2.3:6443"}) {
		t.Errorf("before the Nodes arrived: %q", got)
	}
	d.balancer.Set([]string{"10.1.2.4:6443", "10.1.2.5:6443"})
	if got := d.knownMasters(); !slices.Equal(got, []string{"10.1.2.4:6443", "10.1.2.5:6443"}) {
		t.Errorf("afterwards: %q", got)
	}
}
