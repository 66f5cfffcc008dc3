package certs

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/netip"
	"time"
)

// NewRequest returns a request (PKCS #10, in PEM) for a certificate of a key.
func NewRequest(key *ecdsa.PrivateKey, name pkix.Name, dnsNames []string, ips []netip.Addr) ([]byte, error) {
	tmpl := &x509.CertificateRequest{Subject: name, DNSNames: dnsNames}
	for _, ip := range ips {
		tmpl.IPAddresses = append(tmpl.IPAddresses, ip.AsSlice())
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, tmpl, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// Sign returns the certificate (PEM) that a request asks for: with its subject and its names, for the given usages.
// The certificate lasts as long as the CA's others, or lasts if that is shorter and not 0.
func (a *Authority) Sign(req *x509.CertificateRequest, usage x509.KeyUsage, ext []x509.ExtKeyUsage, lasts time.Duration) ([]byte, error) {
	if lasts <= 0 || lasts > a.Lifetime {
		lasts = a.Lifetime
	}
	tmpl := a.template(req.Subject, lasts, ext...)
	tmpl.KeyUsage = usage
	tmpl.DNSNames, tmpl.IPAddresses, tmpl.EmailAddresses, tmpl.URIs = req.DNSNames, req.IPAddresses, req.EmailAddresses, req.URIs
	tmpl.BasicConstraintsValid = true
	return create(tmpl, a.cert, req.PublicKey, a.key)
}

// ClientWith is the certificate of a user with these groups, for a key that there is. It is not stored.
func (a *Authority) ClientWith(key *ecdsa.PrivateKey, user string, groups ...string) (Pair, error) {
	tmpl := a.template(pkix.Name{CommonName: user, Organization: groups}, a.Lifetime, x509.ExtKeyUsageClientAuth)
	cert, err := create(tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	return WithKey(cert, key)
}

// Pin is the KeyPin of the CA, by which a machine that joins recognises it.
func (a *Authority) Pin() string { return KeyPin(a.cert.RawSubjectPublicKeyInfo) }

// KeyPin is the SHA-256 of a public key (a DER SubjectPublicKeyInfo), in hexadecimal, as in kubeadm's
// --discovery-token-ca-cert-hash.
func KeyPin(spki []byte) string {
	sum := sha256.Sum256(spki)
	return hex.EncodeToString(sum[:])
}

// PinOf is the KeyPin of a key.
func PinOf(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", err
	}
	return KeyPin(der), nil
}

// WithKey is the pair of a certificate (PEM) and its key. The error says that they do not belong together.
func WithKey(cert []byte, key *ecdsa.PrivateKey) (Pair, error) {
	data, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	p := Pair{Cert: cert, Key: data}
	if _, err := p.TLS(); err != nil {
		return Pair{}, fmt.Errorf("the certificate: %w", err)
	}
	return p, nil
}
