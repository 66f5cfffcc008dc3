package api

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// ParseCertificateRequest reads a request for a certificate (PKCS #10) in PEM. The error says what is wrong with it, also
// if its sender does not have the key.
func ParseCertificateRequest(data []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, errors.New("expected one PEM block")
	}
	req, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return req, req.CheckSignature()
}
