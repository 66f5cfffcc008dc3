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
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/gateway/routes"
)

// readTime is how long a handshake waits for a Secret that nobody has asked for before.
const readTime = 5 * time.Second

// certificates are those that clients have asked for. Each follows its Secret as long as a route names it.
type certificates struct {
	follow func(ctx context.Context, namespace, name string, told func(*corev1.Secret, error))
	log    *slog.Logger

	mu      sync.Mutex
	known   map[routes.SecretName]*certificate
	ended   bool
	running sync.WaitGroup

	ownOnce sync.Once
	own     *tls.Certificate
	ownErr  error
}

// certificate is that of a Secret.
type certificate struct {
	stop context.CancelFunc
	told chan struct{}                   // closed when it is known whether there is one
	cert atomic.Pointer[tls.Certificate] // nil: there is none that can be used
}

// of is the certificate of a Secret; nil: there is none that can be used.
func (c *certificates) of(ctx context.Context, s routes.SecretName) *tls.Certificate {
	e := c.entry(s)
	if e == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, readTime)
	defer stop()
	select {
	case <-e.told:
	case <-ctx.Done():
	}
	return e.cert.Load()
}

// entry is a certificate that is followed from now on, if it was not before.
func (c *certificates) entry(s routes.SecretName) *certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.follow == nil || c.ended {
		return nil
	}
	if e := c.known[s]; e != nil {
		return e
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &certificate{stop: stop, told: make(chan struct{})}
	if c.known == nil {
		c.known = map[routes.SecretName]*certificate{}
	}
	c.known[s] = e
	said, answered := "", sync.OnceFunc(func() { close(e.told) })
	c.running.Go(func() {
		c.follow(ctx, s.Namespace, s.Name, func(secret *corev1.Secret, err error) {
			defer answered()
			var cert *tls.Certificate
			gone := err == nil && secret == nil
			switch {
			case gone:
				err = errors.New("there is no such Secret")
			case err == nil:
				cert, err = pairOf(secret)
			}
			if cert != nil || gone { // while the API does not answer, or of one that cannot be read, the one from before is better than none
				e.cert.Store(cert)
			}
			if text := fmt.Sprint(err); err != nil && text != said {
				c.log.Warn("a certificate cannot be used", "secret", s.Namespace+"/"+s.Name, "error", err)
				said = text
			} else if err == nil {
				said = ""
			}
		})
	})
	return e
}

// keep ends to follow the Secrets that no route names any more.
func (c *certificates) keep(t *routes.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, e := range c.known {
		if !t.Names(s) {
			e.stop()
			delete(c.known, s)
		}
	}
}

// close ends to follow all Secrets.
func (c *certificates) close() {
	c.mu.Lock()
	c.ended = true
	for _, e := range c.known {
		e.stop()
	}
	c.mu.Unlock()
	c.running.Wait()
}

func pairOf(secret *corev1.Secret) (*tls.Certificate, error) {
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
