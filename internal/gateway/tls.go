package gateway

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/gateway/routes"
)

// How long a certificate is used before its Secret is read again, and one that could not be read before it is tried again.
// A Secret that has changed is usually told of before.
const (
	freshFor = time.Minute
	missFor  = 5 * time.Second
	readTime = 5 * time.Second
)

// certificates are those that clients have asked for.
type certificates struct {
	read func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	log  *slog.Logger

	mu      sync.Mutex
	known   map[routes.SecretName]*certificate
	ownOnce sync.Once
	own     *tls.Certificate
	ownErr  error
}

// certificate is that of a Secret. Its own lock lets one handshake read while the others wait for the same.
type certificate struct {
	mu    sync.Mutex
	cert  *tls.Certificate // nil: there is none that can be used
	until time.Time
	said  string
}

func (c *certificates) forget(s routes.SecretName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, s)
}

// of is the certificate of a Secret; nil: there is none that can be used.
func (c *certificates) of(ctx context.Context, s routes.SecretName) *tls.Certificate {
	if c.read == nil {
		return nil
	}
	c.mu.Lock()
	if c.known == nil {
		c.known = map[routes.SecretName]*certificate{}
	}
	e := c.known[s]
	if e == nil {
		e = &certificate{}
		c.known[s] = e
	}
	c.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Now().Before(e.until) {
		return e.cert
	}
	ctx, stop := context.WithTimeout(ctx, readTime)
	defer stop()
	cert, err := c.load(ctx, s)
	switch {
	case err == nil:
		e.cert, e.until, e.said = cert, time.Now().Add(freshFor), ""
	default: // while the API does not answer, the one from before is better than none
		if apierrors.IsNotFound(err) {
			e.cert = nil
		}
		e.until = time.Now().Add(missFor)
		if err.Error() != e.said {
			c.log.Warn("a certificate cannot be used", "secret", s.Namespace+"/"+s.Name, "error", err)
			e.said = err.Error()
		}
	}
	return e.cert
}

func (c *certificates) load(ctx context.Context, s routes.SecretName) (*tls.Certificate, error) {
	secret, err := c.read(ctx, s.Namespace, s.Name)
	if err != nil {
		return nil, err
	}
	chain, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(chain) == 0 || len(key) == 0 {
		return nil, errors.New("the Secret has no tls.crt and tls.key")
	}
	cert, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, err
	}
	return &cert, nil
}

// fallback is a certificate of our own that nobody trusts: better than a broken handshake, as clients say what is wrong.
func (c *certificates) fallback() (*tls.Certificate, error) {
	c.ownOnce.Do(func() {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			c.ownErr = err
			return
		}
		serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
		if err != nil {
			c.ownErr = err
			return
		}
		template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "minik8s gateway, no certificate for this host"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0), DNSNames: []string{"gateway.minik8s.invalid"},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			c.ownErr = err
			return
		}
		c.own = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	})
	return c.own, c.ownErr
}

// tlsConfig is that of connections at an address.
func (g *Gateway) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if s, ok := g.view.Load().table.Certificate(localAddr(hello.Conn), routes.Hostname(hello.ServerName)); ok {
			if cert := g.certs.of(hello.Context(), s); cert != nil {
				return cert, nil
			}
		}
		return g.certs.fallback()
	}}
}

// isTLS says whether a connection is one by TLS.
func isTLS(c net.Conn) bool {
	switch c := c.(type) {
	case *tls.Conn:
		return true
	case interface{ NetConn() net.Conn }:
		return isTLS(c.NetConn())
	}
	return false
}
