package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"time"

	"minik8s/internal/clock"
)

// RenewAt is when a certificate is due for renewal: when less than a third of its lifetime is left, so that a month
// without a master does not end a certificate of a year.
func RenewAt(cert *x509.Certificate) time.Time {
	return cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / 3)
}

// Kept is a certificate that servers and clients use while it is renewed. New connections have the newest one;
// connections that are open stay.
type Kept struct {
	renew   func(context.Context) (Pair, error)
	current atomic.Pointer[tls.Certificate]
}

// Keep returns the Kept of a pair, or, if it is the zero Pair, of one that is yet to come. renew returns the next one,
// or the present one if that is good.
func Keep(p Pair, renew func(context.Context) (Pair, error)) (*Kept, error) {
	k := &Kept{renew: renew}
	if p.Cert == nil {
		return k, nil
	}
	return k, k.set(p)
}

// Use returns the Kept of a certificate that is not renewed.
func Use(c tls.Certificate) *Kept {
	k := &Kept{}
	k.current.Store(&c)
	return k
}

func (k *Kept) set(p Pair) error {
	c, err := p.TLS()
	if err != nil {
		return err
	}
	if c.Leaf == nil {
		if c.Leaf, err = x509.ParseCertificate(c.Certificate[0]); err != nil {
			return err
		}
	}
	k.current.Store(&c)
	return nil
}

var errNoneYet = errors.New("there is no certificate yet")

// ForServer is for tls.Config.GetCertificate.
func (k *Kept) ForServer(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.current.Load(); c != nil {
		return c, nil
	}
	return nil, errNoneYet
}

// ForClient is for tls.Config.GetClientCertificate.
func (k *Kept) ForClient(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return k.ForServer(nil)
}

// maxRenewWait bounds the time to the next look at a certificate's end: timers stand still while a machine is suspended.
const maxRenewWait = 12 * time.Hour

// Renew renews the certificate if it is due, and returns how long to wait until the next call. After an error the old
// certificate stays in use.
func (k *Kept) Renew(ctx context.Context) (wait time.Duration, err error) {
	if left := k.left(); left > 0 {
		return min(left, maxRenewWait), nil
	}
	p, err := k.renew(ctx)
	if err == nil {
		err = k.set(p)
	}
	if err != nil {
		return 0, err
	}
	return min(max(k.left(), time.Second), maxRenewWait), nil
}

// left is how long the certificate need not be renewed.
func (k *Kept) left() time.Duration {
	if c := k.current.Load(); c != nil {
		return RenewAt(c.Leaf).Sub(clock.Now())
	}
	return 0
}
