package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"minik8s/internal/clock"
	"minik8s/internal/disk"
)

const (
	caYears = 10
	// DefaultLifetime is how long the certificates last that the CA signs.
	DefaultLifetime = 365 * 24 * time.Hour
	// maxBackdate is how far the clock of another machine may be behind for a new certificate to be valid there.
	maxBackdate = time.Hour
)

// Pair is a certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// TLS returns the pair for crypto/tls. It fails if the pair is not valid.
func (p Pair) TLS() (tls.Certificate, error) { return tls.X509KeyPair(p.Cert, p.Key) }

// Authority signs certificates.
type Authority struct {
	Pair
	// Lifetime is how long new certificates last, from now.
	Lifetime time.Duration
	cert     *x509.Certificate
	key      crypto.Signer
}

// CheckTime says that the CA's certificate is not valid now, so that nobody trusts what it signs.
func (a *Authority) CheckTime() error {
	if now := clock.Now(); now.Before(a.cert.NotBefore) || now.After(a.cert.NotAfter) {
		return fmt.Errorf("the CA is valid from %s to %s, and here it is %s: is the clock right?", a.cert.NotBefore.UTC().Format(time.RFC3339),
			a.cert.NotAfter.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}

// Pool returns the CA's certificate as a pool of trusted certificates.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// OpenAuthority reads the CA of a directory, or makes one if there is none. It fails if the files are damaged or cannot
// be read or written.
func OpenAuthority(dir, name string) (*Authority, error) {
	pair, err := Read(dir, "ca")
	if errors.Is(err, os.ErrNotExist) {
		if _, serr := os.Stat(filepath.Join(dir, "ca.crt")); serr == nil {
			return nil, fmt.Errorf("%s has the CA's certificate and not its key, ca.key: put it back from a backup; "+
				"if this machine was a worker of another cluster, end that with \"minik8sd clean\"", dir)
		}
		return newAuthority(dir, name)
	}
	if err != nil {
		return nil, err
	}
	c, err := pair.TLS()
	if err != nil {
		return nil, fmt.Errorf("the CA in %s is damaged: %w; put it back from a backup, or remove ca.crt and ca.key to make a new one, which no old client will trust", dir, err)
	}
	cert, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("the CA in %s is damaged: %w", dir, err)
	}
	return &Authority{Pair: pair, Lifetime: DefaultLifetime, cert: cert, key: c.PrivateKey.(crypto.Signer)}, nil
}

func newAuthority(dir, name string) (*Authority, error) {
	now := clock.Now()
	tmpl := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(caYears, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	key, pair, err := sign(tmpl, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := Write(dir, "ca", pair); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(pair.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, Lifetime: DefaultLifetime, cert: cert, key: key}, nil
}

// sign makes a key and its certificate. Without an issuer the certificate is self-signed.
func sign(tmpl, issuer *x509.Certificate, issuerKey crypto.Signer) (*ecdsa.PrivateKey, Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, Pair{}, err
	}
	if issuer == nil {
		issuer, issuerKey = tmpl, key
	}
	cert, err := create(tmpl, issuer, key.Public(), issuerKey)
	if err != nil {
		return nil, Pair{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, Pair{}, err
	}
	return key, Pair{Cert: cert, Key: keyPEM}, nil
}

// create signs a certificate and returns it in PEM.
func create(tmpl, issuer *x509.Certificate, public crypto.PublicKey, issuerKey crypto.Signer) ([]byte, error) {
	var err error
	if tmpl.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, issuer, public, issuerKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Server returns a server's certificate for these names and addresses, and stores it under a file name.
func (a *Authority) Server(dir, file string, hosts []string) (Pair, error) {
	return a.leaf(dir, file, a.forHosts("minik8s", hosts, x509.ExtKeyUsageServerAuth))
}

// Peer returns the certificate of one of several that are server and client to each other, and known as user, and
// stores it under a file name.
func (a *Authority) Peer(dir, file, user string, hosts []string) (Pair, error) {
	return a.leaf(dir, file, a.forHosts(user, hosts, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth))
}

func (a *Authority) forHosts(user string, hosts []string, usage ...x509.ExtKeyUsage) *x509.Certificate {
	tmpl := a.template(pkix.Name{CommonName: user}, a.Lifetime, usage...)
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, h)
		}
	}
	return tmpl
}

// Client returns the certificate of a user with these groups, and stores it under a file name.
func (a *Authority) Client(dir, file, user string, groups ...string) (Pair, error) {
	return a.leaf(dir, file, a.template(pkix.Name{CommonName: user, Organization: groups}, a.Lifetime, x509.ExtKeyUsageClientAuth))
}

// template is a certificate to be signed. It is valid from a moment ago, and not longer than the CA.
func (a *Authority) template(name pkix.Name, lasts time.Duration, usage ...x509.ExtKeyUsage) *x509.Certificate {
	now := clock.Now()
	until := now.Add(lasts)
	if until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter
	}
	return &x509.Certificate{Subject: name, NotBefore: now.Add(-min(maxBackdate, lasts/10)), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usage}
}

// leaf reads a certificate. It makes a new one if there is none, or if it is not from this CA, is not valid yet, is due for
// renewal or lacks a name.
func (a *Authority) leaf(dir, file string, tmpl *x509.Certificate) (Pair, error) {
	pair, err := Read(dir, file)
	if err == nil && a.good(pair, tmpl) {
		return pair, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Pair{}, err
	}
	_, pair, err = sign(tmpl, a.cert, a.key)
	if err != nil {
		return Pair{}, err
	}
	return pair, Write(dir, file, pair)
}

func (a *Authority) good(pair Pair, want *x509.Certificate) bool {
	cert, err := pair.leaf()
	if err != nil || cert.CheckSignatureFrom(a.cert) != nil {
		return false
	}
	if now := clock.Now(); now.Before(cert.NotBefore) || !now.Before(RenewAt(cert)) {
		return false
	}
	for _, n := range want.DNSNames {
		if !slices.Contains(cert.DNSNames, n) {
			return false
		}
	}
	for _, ip := range want.IPAddresses {
		if !slices.ContainsFunc(cert.IPAddresses, ip.Equal) {
			return false
		}
	}
	return cert.Subject.CommonName == want.Subject.CommonName && slices.Equal(cert.Subject.Organization, want.Subject.Organization)
}

// leaf is the certificate, if it fits its key.
func (p Pair) leaf() (*x509.Certificate, error) {
	c, err := p.TLS()
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(c.Certificate[0])
}

// Read reads FILE.crt and FILE.key of a directory; the error is os.ErrNotExist if either is not there.
func Read(dir, file string) (Pair, error) {
	cert, err := os.ReadFile(filepath.Join(dir, file+".crt"))
	if err != nil {
		return Pair{}, err
	}
	key, err := os.ReadFile(filepath.Join(dir, file+".key"))
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: cert, Key: key}, nil
}

// Write stores a pair as FILE.crt and FILE.key of a directory, which it makes.
func Write(dir, file string, p Pair) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// The key is written first. A certificate without its key would be found at the next start, but be useless.
	if err := disk.WriteFile(filepath.Join(dir, file+".key"), p.Key, 0o600); err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, file+".crt"), p.Cert, 0o644)
}
