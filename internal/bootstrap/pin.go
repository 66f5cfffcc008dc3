package bootstrap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"minik8s/internal/certs"
	"minik8s/internal/clock"
)

// dialTimeout bounds the handshake with a server that is asked for its CA.
const dialTimeout = 10 * time.Second

// ErrOtherCluster means that a server answers whose CA has another pin.
var ErrOtherCluster = errors.New("its CA is not the one that the token is for: the token is of another cluster, or somebody is between")

// FetchCA returns the CA (PEM) of the API server at an address HOST:PORT, if it has the pin, and if the server's own
// certificate is signed by it and has the name of the host. Nothing is sent to the server but the handshake.
func FetchCA(ctx context.Context, address, pin string) ([]byte, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var ca *x509.Certificate
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: &tls.Config{Time: clock.Now, MinVersion: tls.VersionTLS12, ServerName: host,
		InsecureSkipVerify: true, // the CA is not known yet: it is checked here, against the pin
		VerifyConnection: func(s tls.ConnectionState) error {
			ca, err = pinned(s.PeerCertificates, pin, host)
			return err
		}}}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the API server at %s: %w", address, err)
	}
	c.Close() //nolint:errcheck // nothing was sent
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}), nil
}

// pinned finds the CA with a pin in a chain that a server sent, and checks the server's certificate by it.
func pinned(chain []*x509.Certificate, pin, host string) (*x509.Certificate, error) {
	if len(chain) == 0 {
		return nil, ErrOtherCluster
	}
	for _, ca := range chain {
		if !ca.IsCA || certs.KeyPin(ca.RawSubjectPublicKeyInfo) != pin {
			continue
		}
		roots := x509.NewCertPool()
		roots.AddCert(ca)
		_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: clock.Now()})
		var invalid x509.CertificateInvalidError
		if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
			err = fmt.Errorf("%w: is the clock right, here and there? Here it is %s", err, clock.Now().UTC().Format(time.RFC3339))
		}
		return ca, err
	}
	return nil, ErrOtherCluster
}
