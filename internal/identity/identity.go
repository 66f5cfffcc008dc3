package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/clock"
	"minik8s/internal/disk"
)

// Config says who joins what.
type Config struct {
	// Server is the URL of a master's API, of which the cluster's CA is fetched; it is not needed by a machine that has joined.
	Server string
	// API is the URL by which masters are reached once the CA is known; empty: Server.
	API string
	// Token is a join token; it is needed only as long as the machine has no certificate.
	Token string
	// Dir is where certificates and keys are.
	Dir  string
	Node string
	// Addresses are those of the kubelet's server, for its certificate.
	Addresses []netip.Addr
	Log       *slog.Logger
}

// Identity is a worker that has joined.
type Identity struct {
	cfg     Config
	key     *ecdsa.PrivateKey
	ca      []byte
	pool    *x509.CertPool
	client  *certs.Kept
	serving *certs.Kept
	api     *remote.Client
	asked   map[string]*asked // by file
}

// The names of the files, without .crt and .key.
const (
	caFile      = "ca"
	nodeFile    = "node"
	kubeletFile = "kubelet"
)

// Files are the paths of the CA, the client certificate and its key in an Identity's directory.
func Files(dir string) (ca, cert, key string) {
	return filepath.Join(dir, caFile+".crt"), filepath.Join(dir, nodeFile+".crt"), filepath.Join(dir, nodeFile+".key")
}

// Open joins the cluster, or finds that the machine has joined. It waits for a master for as long as it takes; an
// error is one that waiting does not cure.
func Open(ctx context.Context, cfg Config) (*Identity, error) {
	if cfg.API == "" {
		cfg.API = cfg.Server
	}
	i := &Identity{cfg: cfg, asked: map[string]*asked{nodeFile: {}, kubeletFile: {}}}
	var err error
	if i.key, err = certs.OpenKey(cfg.Dir, nodeFile); err != nil {
		return nil, err
	}
	if err := i.openCA(ctx); err != nil {
		return nil, err
	}
	have, err := i.read(nodeFile)
	if err != nil {
		return nil, err
	}
	if have.Cert == nil {
		if have, err = i.join(ctx); err != nil {
			return nil, err
		}
	}
	if i.client, err = certs.Keep(have, i.renewClient); err != nil {
		return nil, err
	}
	served, err := i.read(kubeletFile)
	if err != nil {
		return nil, err
	}
	if i.serving, err = certs.Keep(served, i.renewServing); err != nil {
		return nil, err
	}
	i.api, err = remote.New(remote.Config{Server: cfg.API, CA: i.ca, Identity: i.client.ForClient, UserAgent: "minik8sd"})
	return i, err
}

// API is the API with the kubelet's identity.
func (i *Identity) API() client.Interface { return i.api }

// CA is the cluster's CA, which signs the certificates of the kubelet's clients.
func (i *Identity) CA() *x509.CertPool { return i.pool }

// Client is the certificate by which the kubelet is known to the API.
func (i *Identity) Client() *certs.Kept { return i.client }

// Serving is the certificate of the kubelet's server. It is not there before it was first renewed.
func (i *Identity) Serving() *certs.Kept { return i.serving }

// openCA reads the cluster's CA, or fetches it from the server.
func (i *Identity) openCA(ctx context.Context) (err error) {
	path := filepath.Join(i.cfg.Dir, caFile+".crt")
	i.ca, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if i.ca, err = i.fetchCA(ctx); err == nil {
			err = disk.WriteFile(path, i.ca, 0o644)
		}
	}
	if err != nil {
		return err
	}
	cert, err := parse(i.ca)
	if err != nil {
		return fmt.Errorf("%s is damaged: %w; remove it, and give a --token", path, err)
	}
	if t, err := bootstrap.Parse(i.cfg.Token); err == nil && t.Pin != "" && t.Pin != certs.KeyPin(cert.RawSubjectPublicKeyInfo) {
		return fmt.Errorf("--token is of another cluster than the one that this machine has joined: remove --token, "+
			"or leave that cluster with \"minik8sd clean\" (its state is in %s)", filepath.Dir(i.cfg.Dir))
	}
	i.pool = x509.NewCertPool()
	i.pool.AddCert(cert)
	return nil
}

func parse(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("it is no PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// token is the join token; the error says that one is needed.
func (i *Identity) token() (bootstrap.Token, error) {
	if i.cfg.Token == "" {
		return bootstrap.Token{}, errors.New("this machine has not joined a cluster: --token is needed; \"minik8sd ctl token create\" on a master prints one")
	}
	t, err := bootstrap.Parse(i.cfg.Token)
	if err != nil {
		return t, fmt.Errorf("--token: %w", err)
	}
	if t.Pin == "" {
		return t, errors.New("--token: it lacks the pin of the cluster's CA, its third part: " +
			"without it this machine cannot know whom it talks to; \"minik8sd ctl token create\" prints one with it")
	}
	return t, nil
}

func (i *Identity) fetchCA(ctx context.Context) (ca []byte, err error) {
	t, err := i.token()
	if err != nil {
		return nil, err
	}
	at, err := i.address()
	if err != nil {
		return nil, err
	}
	err = i.retry(ctx, "the cluster's CA", func() error {
		ca, err = bootstrap.FetchCA(ctx, at, t.Pin)
		var name x509.HostnameError
		if errors.Is(err, bootstrap.ErrOtherCluster) || errors.As(err, &name) {
			return final{err}
		}
		return err
	})
	return ca, err
}

// address is the server's host and port.
func (i *Identity) address() (string, error) {
	u, err := url.Parse(i.cfg.Server)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("--server is %q: a URL like https://HOST:6443 is needed", i.cfg.Server)
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "443"), nil
	}
	return u.Host, nil
}

// read reads a certificate of this machine's key; the zero Pair if there is none that is of use.
func (i *Identity) read(file string) (certs.Pair, error) {
	data, err := os.ReadFile(filepath.Join(i.cfg.Dir, file+".crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return certs.Pair{}, nil
	}
	if err != nil {
		return certs.Pair{}, err
	}
	pair, err := certs.WithKey(data, i.key)
	if err != nil {
		return certs.Pair{}, nil //nolint:nilerr // damaged or of another key: a new one is asked for
	}
	cert, err := parse(data)
	if err != nil || !i.covers(file, cert) {
		return certs.Pair{}, nil //nolint:nilerr // as above
	}
	if clock.Now().After(cert.NotAfter) {
		if file == nodeFile && i.cfg.Token == "" {
			return certs.Pair{}, fmt.Errorf("this machine's certificate expired at %s, and it cannot ask for another with it: "+
				"give a --token; \"minik8sd ctl token create\" on a master prints one", cert.NotAfter.UTC().Format(time.RFC3339))
		}
		i.cfg.Log.Warn("a certificate of this machine has expired: it asks for another", "file", file+".crt", "expired", cert.NotAfter.UTC())
		return certs.Pair{}, nil
	}
	return pair, nil // also one that is not valid yet: a clock that is wrong now may be set soon
}

// covers reports whether a certificate has the names that it needs now: of a serving one the machine's addresses, of
// any the node's name.
func (i *Identity) covers(file string, cert *x509.Certificate) bool {
	if cert.Subject.CommonName != i.subject().CommonName {
		return false
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: i.pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		CurrentTime: cert.NotBefore.Add(time.Second)}); err != nil {
		return false
	}
	if file != kubeletFile {
		return true
	}
	for _, a := range i.cfg.Addresses {
		if cert.VerifyHostname(a.String()) != nil {
			return false
		}
	}
	return cert.VerifyHostname(i.cfg.Node) == nil
}

func (i *Identity) subject() pkix.Name {
	return pkix.Name{CommonName: "system:node:" + i.cfg.Node, Organization: []string{"system:nodes"}}
}

// join asks for the first certificate, with the join token.
func (i *Identity) join(ctx context.Context) (certs.Pair, error) {
	t, err := i.token()
	if err != nil {
		return certs.Pair{}, err
	}
	api, err := remote.New(remote.Config{Server: i.cfg.API, CA: i.ca, Token: t.Bearer(), UserAgent: "minik8sd"})
	if err != nil {
		return certs.Pair{}, err
	}
	defer api.Close()
	var pair certs.Pair
	err = i.retry(ctx, "this machine's certificate", func() (err error) {
		pair, err = i.obtainClient(ctx, api)
		if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return final{err}
		}
		return err
	})
	return pair, err
}

func (i *Identity) renewClient(ctx context.Context) (certs.Pair, error) {
	return i.obtainClient(ctx, i.api)
}

func (i *Identity) obtainClient(ctx context.Context, api client.Interface) (certs.Pair, error) {
	return i.obtain(ctx, api, nodeFile, request{signer: certificatesv1.KubeAPIServerClientKubeletSignerName, usage: certificatesv1.UsageClientAuth})
}

func (i *Identity) renewServing(ctx context.Context) (certs.Pair, error) {
	return i.obtain(ctx, i.api, kubeletFile, request{signer: certificatesv1.KubeletServingSignerName, usage: certificatesv1.UsageServerAuth,
		names: []string{i.cfg.Node}, ips: i.cfg.Addresses})
}

// obtain asks for a certificate and stores it.
func (i *Identity) obtain(ctx context.Context, api client.Interface, file string, r request) (certs.Pair, error) {
	data, err := certs.NewRequest(i.key, i.subject(), r.names, r.ips)
	if err != nil {
		return certs.Pair{}, err
	}
	cert, err := i.asked[file].ask(ctx, api, r, i.cfg.Node, data, i.cfg.Log)
	if err != nil {
		return certs.Pair{}, err
	}
	pair, err := certs.WithKey(cert, i.key)
	if err != nil {
		return certs.Pair{}, err
	}
	return pair, disk.WriteFile(filepath.Join(i.cfg.Dir, file+".crt"), cert, 0o644)
}

// final is an error that trying again does not cure.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

const (
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
)

// retry calls f until it succeeds, fails for good, or ctx ends.
func (i *Identity) retry(ctx context.Context, what string, f func() error) error {
	for delay := minRetry; ; delay = min(2*delay, maxRetry) {
		err := f()
		var last final
		switch {
		case err == nil:
			return nil
		case errors.As(err, &last):
			return fmt.Errorf("joining the cluster at %s: %w", i.cfg.Server, last.error)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		i.cfg.Log.Warn("the cluster cannot be joined yet, trying again", "missing", what, "error", err, "in", delay)
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}
