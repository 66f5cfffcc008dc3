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

	"minik8s/internal/disk"
)

const (
	caYears     = 10
	leafYears   = 1
	renewBefore = 30 * 24 * time.Hour
)

// Pair is a certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// TLS returns the pair for crypto/tls. It fails if the pair is not valid.
func (p Pair) TLS() (tls.Certificate, error) { return tls.X509KeyPair(p.Cert, p.Key) }

// Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  crypto.Signer
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
	pair, err := read(dir, "ca")
	if errors.Is(err, os.ErrNotExist) {
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
	return &Authority{Pair: pair, cert: cert, key: c.PrivateKey.(crypto.Signer)}, nil
}

func newAuthority(dir, name string) (*Authority, error) {
	now := time.Now()
	tmpl := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(caYears, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	key, pair, err := sign(tmpl, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := write(dir, "ca", pair); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(pair.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, cert: cert, key: key}, nil
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
	if tmpl.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, issuer, key.Public(), issuerKey)
	if err != nil {
		return nil, Pair{}, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, Pair{}, err
	}
	return key, Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// Server returns a server's certificate for these names and addresses, and stores it under a file name.
func (a *Authority) Server(dir, file string, hosts []string) (Pair, error) {
	tmpl := leaf(pkix.Name{CommonName: "minik8s"}, x509.ExtKeyUsageServerAuth)
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, h)
		}
	}
	return a.leaf(dir, file, tmpl)
}

// Client returns the certificate of a user with these groups, and stores it under a file name.
func (a *Authority) Client(dir, file, user string, groups ...string) (Pair, error) {
	return a.leaf(dir, file, leaf(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth))
}

func leaf(name pkix.Name, usage x509.ExtKeyUsage) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{Subject: name, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(leafYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}}
}

// leaf reads a certificate. It makes a new one if there is none, or if it is not from this CA, expires soon or lacks a
// name.
func (a *Authority) leaf(dir, file string, tmpl *x509.Certificate) (Pair, error) {
	pair, err := read(dir, file)
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
	return pair, write(dir, file, pair)
}

func (a *Authority) good(pair Pair, want *x509.Certificate) bool {
	c, err := pair.TLS()
	if err != nil {
		return false
	}
	cert, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil || cert.CheckSignatureFrom(a.cert) != nil || time.Until(cert.NotAfter) < renewBefore {
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

func read(dir, file string) (Pair, error) {
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

func write(dir, file string, p Pair) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// The key is written first. A certificate without its key would be found at the next start, but be useless.
	if err := disk.WriteFile(filepath.Join(dir, file+".key"), p.Key, 0o600); err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, file+".crt"), p.Cert, 0o644)
}
