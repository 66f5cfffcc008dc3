package config

import (
	"net/netip"
	"strings"
	"testing"
)

// A pool is read in each of its forms, and its addresses are counted one after another over all its ranges.
func TestAddressPool(t *testing.T) {
	p, err := ParseAddressPool("10.9.0.10-10.9.0.12, 10.9.1.16/30,10.9.2.1")
	if err != nil || p.Size() != 8 || p.String() != "10.9.0.10-10.9.0.12,10.9.1.16-10.9.1.19,10.9.2.1" {
		t.Fatal(p, p.Size(), err)
	}
	if again, err := ParseAddressPool(p.String()); err != nil || again.String() != p.String() {
		t.Error(again, err)
	}
	for n := range p.Size() {
		if !p.Contains(p.At(n)) {
			t.Error(n, p.At(n))
		}
	}
	for addr, want := range map[string]bool{"10.9.0.9": false, "10.9.0.10": true, "10.9.0.12": true, "10.9.0.13": false, "10.9.1.20": false, "10.9.2.1": true, "::1": false} {
		if p.Contains(netip.MustParseAddr(addr)) != want {
			t.Error(addr)
		}
	}
	if p.At(7) != netip.MustParseAddr("10.9.2.1") || p.At(8).IsValid() {
		t.Error(p.At(7), p.At(8))
	}
	for v, want := range map[string]string{
		"10.9.0.10-10.9.0.9": "before the first", "10.9.0.0/8": "more than", "fd00::/120": "expected IPv4", "x": "expected IPv4", "10.9.0.1-": "expected IPv4",
		"127.0.0.1": "no single machine's", "10.9.0.1-10.9.0.5,10.9.0.5": "overlaps 10.9.0.1-10.9.0.5", "224.0.0.0/24": "no single machine's",
	} {
		if _, err := ParseAddressPool(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", v, err)
		}
	}
	for _, bad := range []map[string]string{{"lb-pool": "10.244.3.1"}, {"lb-pool": "10.96.0.0/24"}, {"lb-pool": "10.9.0.1", "node-ip": "10.9.0.1"},
		{"lb-pool": "10.9.0.1", "role": "worker", "server": "https://10.0.0.1:6443"}} {
		if _, err := Load("", func(string) (string, bool) { return "", false }, nil, bad); err == nil || !strings.HasPrefix(err.Error(), "lb-pool: ") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
