package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"minik8s/internal/disk"
)

// OpenKey reads the key FILE.key of a directory, or makes one if there is none. The key is for signing other things
// than certificates. Masters of one cluster share it, like the CA. It fails if the file is damaged or cannot be read or
// written.
func OpenKey(dir, file string) (*ecdsa.PrivateKey, error) {
	path := filepath.Join(dir, file+".key")
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return newKey(dir, path)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("the key %s is damaged: it is no PEM; put it back from a backup, or remove it to make a new one, which ends all that the old one has signed", path)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key %s is damaged: %w; put it back from a backup, or remove it to make a new one, which ends all that the old one has signed", path, err)
	}
	return key, nil
}

func newKey(dir, path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	data, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return key, disk.WriteFile(path, data, 0o600)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
