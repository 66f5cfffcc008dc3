// Package registrytest is a registry of others for tests: CNCF distribution over HTTP on loopback, or over HTTPS, which knows its clients
// by user and password, and lets images be removed or not.
package registrytest

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // it registers itself
	"github.com/distribution/distribution/v3/registry/handlers"
	"golang.org/x/crypto/bcrypt"

	"minik8s/internal/certs"
)

// The login that it knows.
const (
	User     = "pusher"
	Password = "s3cret-word"
)

// Registry is one. It ends with the test.
type Registry struct {
	Host string // ADDRESS:PORT
	Dir  string
	// CAFile is the CA of its certificate; empty: it speaks plain HTTP.
	CAFile string
	// Hides says of an image that is not there that nobody may see it, as some registries do to who asks only for the right to pull.
	Hides bool

	t       *testing.T
	tls     *tls.Config
	handler http.Handler
	server  *http.Server
	mu      sync.Mutex
	asked   []string
}

// Start starts one on loopback.
func Start(t *testing.T, deletes bool) *Registry {
	t.Helper()
	r := &Registry{t: t}
	r.start("127.0.0.1", deletes)
	return r
}

// StartTLS starts one that speaks HTTPS at an address.
func StartTLS(t *testing.T, address string, deletes bool) *Registry {
	t.Helper()
	dir := t.TempDir()
	ca, err := certs.OpenAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Server(dir, "registry", []string{address})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	r := &Registry{t: t, CAFile: filepath.Join(dir, "ca.crt"), tls: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}}
	r.start(address, deletes)
	return r
}

func (r *Registry) start(address string, deletes bool) {
	t := r.t
	t.Helper()
	r.Dir = t.TempDir()
	users := filepath.Join(t.TempDir(), "htpasswd")
	sum, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(users, fmt.Appendf(nil, "%s:%s\n", User, sum), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &configuration.Configuration{Version: configuration.CurrentVersion,
		Storage: configuration.Storage{"filesystem": configuration.Parameters{"rootdirectory": r.Dir}, "delete": configuration.Parameters{"enabled": deletes},
			"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}}},
		Auth: configuration.Auth{"htpasswd": configuration.Parameters{"realm": "test", "path": users}}}
	cfg.HTTP.Secret = "x"
	r.handler = handlers.NewApp(t.Context(), cfg)
	r.serve(net.JoinHostPort(address, "0"))
	t.Cleanup(func() { r.server.Close() }) //nolint:errcheck // the test has ended
}

func (r *Registry) serve(address string) {
	r.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.Host = l.Addr().String(); r.tls != nil {
		l = tls.NewListener(l, r.tls)
	}
	r.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, q.Method+" "+q.URL.Path)
		r.mu.Unlock()
		if r.Hides && q.Method == http.MethodHead && strings.Contains(q.URL.Path, "/manifests/sha256:") {
			w = hiding{w}
		}
		r.handler.ServeHTTP(w, q)
	})}
	go r.server.Serve(l) //nolint:errcheck // it ends with Close
}

// hiding turns 404 into 401.
type hiding struct{ http.ResponseWriter }

func (h hiding) WriteHeader(code int) {
	if code == http.StatusNotFound {
		code = http.StatusUnauthorized
	}
	h.ResponseWriter.WriteHeader(code)
}

// Asked is what it was asked for since the last time: METHOD PATH.
func (r *Registry) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.asked
	r.asked = nil
	return out
}

// Stop closes its port, and Again opens it.
func (r *Registry) Stop() { r.server.Close() } //nolint:errcheck // what is open does not matter

// Again opens its port.
func (r *Registry) Again() { r.serve(r.Host) }

// Images are the digests of a repository's images.
func (r *Registry) Images(repository string) []string {
	found, err := filepath.Glob(filepath.Join(r.Dir, "docker/registry/v2/repositories", repository, "_manifests/revisions/sha256/*/link"))
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		out = append(out, "sha256:"+filepath.Base(filepath.Dir(f)))
	}
	return out
}

// Remove removes an image, as its operator would.
func (r *Registry) Remove(repository, digest string) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodDelete, "http://"+r.Host+"/v2/"+repository+"/manifests/"+digest, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.SetBasicAuth(User, Password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	resp.Body.Close() //nolint:errcheck // its status counts
	if resp.StatusCode != http.StatusAccepted {
		r.t.Fatalf("removing %s: %s", digest, resp.Status)
	}
}

// AuthFile is a docker config.json with the login, or with another password if right is false.
func (r *Registry) AuthFile(right bool) string {
	r.t.Helper()
	at := filepath.Join(r.t.TempDir(), "config.json")
	r.WriteAuth(at, right)
	return at
}

// WriteAuth writes that file.
func (r *Registry) WriteAuth(at string, right bool) {
	r.t.Helper()
	password := Password
	if !right {
		password = "wr0ng-" + Password
	}
	if err := os.WriteFile(at, fmt.Appendf(nil, `{"auths": {%q: {"username": %q, "password": %q}}}`, r.Host, User, password), 0o600); err != nil {
		r.t.Fatal(err)
	}
}
