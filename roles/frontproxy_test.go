package roles

import (
	"bytes"
	"crypto/x509"
	"net/netip"
	"testing"

	"minik8s/config"
	"minik8s/internal/certs"
)

// All masters are the same front proxy: one that joins gets its CA with the cluster's keys. The CA is not the cluster's,
// so that no other certificate of the cluster speaks for users.
func TestMastersShareTheFrontProxy(t *testing.T) {
	master := func() *Daemon {
		return &Daemon{cfg: &config.Config{DataDir: t.TempDir(), NodeName: "m", NodeIP: netip.MustParseAddr("10.0.0.1"), APIPort: 6443, ClusterDomain: "cluster.local",
			ServiceCIDR: netip.MustParsePrefix(config.DefaultServiceCIDR), CertificateLifetime: certs.DefaultLifetime}}
	}
	first, second := master(), master()
	open := func(d *Daemon) {
		t.Helper()
		if err := d.openAuthority(); err != nil {
			t.Fatal(err)
		}
		if err := d.issue(); err != nil {
			t.Fatal(err)
		}
	}
	open(first)
	keys, err := first.keys()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.storeKeys(keys); err != nil {
		t.Fatal(err)
	}
	open(second)
	if !bytes.Equal(first.frontCA, second.frontCA) || bytes.Equal(first.frontCA, first.ca.Cert) {
		t.Fatal("the front proxy's CA is not that of the other master, or the cluster's")
	}
	cert, err := second.creds.front.ForClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(first.frontCA)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: client}); err != nil || leaf.Subject.CommonName != "front-proxy-client" {
		t.Errorf("%v, %s", err, leaf.Subject)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: second.creds.trust, KeyUsages: client}); err == nil {
		t.Error("the cluster's own CA vouches for it")
	}
	// A master of an earlier version sends no front proxy: then this one makes its own.
	third := master()
	keys.FrontProxyCACert, keys.FrontProxyCAKey = nil, nil
	if err := third.storeKeys(keys); err != nil {
		t.Fatal(err)
	}
	open(third)
	if bytes.Equal(third.frontCA, first.frontCA) || len(third.frontCA) == 0 {
		t.Error("no front proxy of its own")
	}
}
