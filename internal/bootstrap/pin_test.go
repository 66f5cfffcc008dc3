package bootstrap_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"testing"

	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
)

// serve answers handshakes with a certificate of a CA for some hosts, and sends the CA along, or those of others.
func serve(t *testing.T, ca *certs.Authority, sent []byte, hosts ...string) string {
	t.Helper()
	pair, err := ca.Server(t.TempDir(), "server", hosts)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	if block, _ := pem.Decode(sent); block != nil {
		cert.Certificate = append(cert.Certificate, block.Bytes)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func(c net.Conn) {
				defer c.Close()
				buf := make([]byte, 1)
				if n, _ := c.Read(buf); n > 0 {
					t.Error("the client sent something")
				}
			}(c)
		}
	}()
	return l.Addr().String()
}

func TestFetchCA(t *testing.T) {
	ours, err := certs.OpenAuthority(t.TempDir(), "ours")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := certs.OpenAuthority(t.TempDir(), "theirs")
	if err != nil {
		t.Fatal(err)
	}
	got, err := bootstrap.FetchCA(context.Background(), serve(t, ours, ours.Cert, "127.0.0.1"), ours.Pin())
	if err != nil || !bytes.Equal(got, ours.Cert) {
		t.Fatalf("%s, %v", got, err)
	}
	for name, at := range map[string]string{
		"another cluster":              serve(t, theirs, theirs.Cert, "127.0.0.1"),
		"no CA sent":                   serve(t, ours, nil, "127.0.0.1"),
		"our CA, another's signature":  serve(t, theirs, ours.Cert, "127.0.0.1"),
		"a certificate of other hosts": serve(t, ours, ours.Cert, "10.0.0.1"),
	} {
		if got, err := bootstrap.FetchCA(context.Background(), at, ours.Pin()); err == nil {
			t.Errorf("%s: %s was taken", name, got)
		}
	}
	if _, err := bootstrap.FetchCA(context.Background(), serve(t, theirs, theirs.Cert, "127.0.0.1"), ours.Pin()); !errors.Is(err, bootstrap.ErrOtherCluster) {
		t.Error(err)
	}
}
