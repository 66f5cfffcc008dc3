package certs_test

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"minik8s/internal/certs"
)

func authority(t *testing.T, dir string) *certs.Authority {
	t.Helper()
	a, err := certs.OpenAuthority(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestFilesAreUsedAgain(t *testing.T) {
	dir := t.TempDir()
	a := authority(t, dir)
	if b := authority(t, dir); !bytes.Equal(a.Cert, b.Cert) {
		t.Fatal("a second CA was made")
	}
	one, err := a.Server(dir, "server", []string{"localhost", "10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	two, err := a.Server(dir, "server", []string{"localhost"})
	if err != nil || !bytes.Equal(one.Cert, two.Cert) {
		t.Fatal("a good certificate was made anew", err)
	}
	three, err := a.Server(dir, "server", []string{"localhost", "10.0.0.2"})
	if err != nil || bytes.Equal(one.Cert, three.Cert) {
		t.Fatal("a certificate without the address was kept", err)
	}
	for _, f := range []string{"ca.key", "server.key"} {
		st, err := os.Stat(filepath.Join(dir, f))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, st.Mode(), err)
		}
	}
}

func TestSignedByTheCA(t *testing.T) {
	dir := t.TempDir()
	a := authority(t, dir)
	pair, err := a.Client(dir, "admin", "admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	c, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Fatal(err)
	}
	if cert.Subject.CommonName != "admin" || cert.Subject.Organization[0] != "system:masters" {
		t.Fatal(cert.Subject)
	}
	if other := authority(t, t.TempDir()); cert.CheckSignatureFrom(certificate(t, other)) == nil {
		t.Fatal("another CA's name on it")
	}
}

func certificate(t *testing.T, a *certs.Authority) *x509.Certificate {
	t.Helper()
	c, err := a.TLS()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// A damaged CA is reported and not replaced: a new one would lock out every client.
func TestDamagedCAIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	authority(t, dir)
	path := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(path, []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := certs.OpenAuthority(dir, "test"); err == nil {
		t.Fatal("a damaged CA was accepted")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "nonsense" {
		t.Fatal("it was overwritten")
	}
}

// A CA of which the key is lost, or that is another cluster's, is not made anew.
func TestCAWithoutItsKey(t *testing.T) {
	dir := t.TempDir()
	before := authority(t, dir)
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := certs.OpenAuthority(dir, "test"); err == nil || !strings.Contains(err.Error(), "put it back") {
		t.Error(err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "ca.crt")); err != nil || !bytes.Equal(now, before.Cert) {
		t.Error("the certificate was overwritten", err)
	}
}
