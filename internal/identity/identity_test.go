package identity_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/apiserver"
	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/controller/certificates"
	"minik8s/internal/identity"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

var quiet = slog.New(slog.DiscardHandler)

// master is an API server over TLS, with the controller that signs.
type master struct {
	t      *testing.T
	ca     *certs.Authority
	reg    *registry.Registry
	admin  client.Interface
	server string
	stop   func()
}

func newMaster(t *testing.T, address string) *master {
	t.Helper()
	dir := t.TempDir()
	m := &master{t: t, reg: registrytest.New(t)}
	var err error
	if m.ca, err = certs.OpenAuthority(dir, "test"); err != nil {
		t.Fatal(err)
	}
	m.admin = local.New(m.reg, registry.System)
	if err := m.reg.Ensure(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}); err != nil {
		t.Fatal(err)
	}
	pair, err := m.ca.Server(dir, "apiserver", []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	pair.Cert = bytes.Join([][]byte{pair.Cert, m.ca.Cert}, nil)
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	m.server = "https://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	srv := apiserver.New(apiserver.Config{Registry: m.reg, Listener: l, Address: l.Addr().String(), Cert: certs.Use(cert), ClientCA: m.ca.Pool(), Log: quiet})
	signer := certificates.New(local.New(m.reg, registry.Part("certificates-controller")), nil, m.ca, func() ([]string, error) { return nil, nil }, quiet)
	wg.Go(func() { srv.Run(ctx, func() {}) })    //nolint:errcheck // it ends with ctx
	wg.Go(func() { signer.Run(ctx, func() {}) }) //nolint:errcheck // as above
	m.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(m.stop)
	return m
}

func (m *master) token(lasts time.Duration) string {
	m.t.Helper()
	tok := bootstrap.New(m.ca.Pin())
	s := bootstrap.SecretOf(tok, bootstrap.Options{Groups: []string{bootstrap.GroupWorkers}, Expires: time.Now().Add(lasts)})
	if _, err := m.admin.Create(m.t.Context(), s, client.WriteOptions{}); err != nil {
		m.t.Fatal(err)
	}
	return tok.String()
}

func (m *master) join(dir, node, token string) (*identity.Identity, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	return identity.Open(ctx, identity.Config{Server: m.server, Token: token, Dir: dir, Node: node,
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.7")}, Log: quiet})
}

func (m *master) requests() int {
	m.t.Helper()
	list, err := m.admin.List(m.t.Context(), api.CertificateSigningRequests, client.ListOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	return len(list.Items)
}

// A machine joins once: after that it needs neither the token nor, to start, a master. Its certificates are renewed
// for the same key.
func TestJoin(t *testing.T) {
	m, dir := newMaster(t, "127.0.0.1:0"), t.TempDir()
	id, err := m.join(dir, "n1", m.token(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.7"}}
	made, err := id.API().Create(t.Context(), node, client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := made.GetAnnotations()[api.MachineKeyAnnotation]
	if key == "" {
		t.Error("the name is not bound to the machine")
	}
	if _, err := id.Serving().Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	cert, err := id.Serving().ForServer(nil)
	if err != nil || cert.Leaf.VerifyHostname("n1") != nil || cert.Leaf.VerifyHostname("10.0.0.7") != nil {
		t.Errorf("%v, %v", cert, err)
	}
	for _, f := range []string{"node.key", "node.crt", "kubelet.crt", "ca.crt"} {
		st, err := os.Stat(filepath.Join(dir, f))
		if err != nil || strings.HasSuffix(f, ".key") && st.Mode().Perm() != 0o600 {
			t.Error(f, st, err)
		}
	}
	asked := m.requests()
	m.stop()
	again, err := m.join(dir, "n1", "") // as after a restart, without a master and without the token
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Serving().ForServer(nil); err != nil || !bytes.Equal(got.Certificate[0], cert.Certificate[0]) {
		t.Error("the serving certificate was not found again", err)
	}
	if m.requests() != asked {
		t.Error("a certificate was asked for that was there")
	}
}

// What trying again does not cure ends it, with what to do, and without the token in the text.
func TestRefusals(t *testing.T) {
	m, other := newMaster(t, "127.0.0.1:0"), newMaster(t, "127.0.0.1:0")
	good := m.token(time.Hour)
	taken := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "taken", Annotations: map[string]string{api.MachineKeyAnnotation: "other"}}}
	if _, err := m.admin.Create(t.Context(), taken, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	joined := t.TempDir()
	if _, err := m.join(joined, "joined", good); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, dir, node, token, says string
	}{
		{"no token", "", "n1", "", "--token is needed"},
		{"no form", "", "n1", "hello", "--token: expected ID.SECRET.PIN"},
		{"no pin", "", "n1", good[:23], "lacks the pin"},
		{"of another cluster", "", "n1", other.token(time.Hour), "of another cluster"},
		{"expired", "", "n1", m.token(-time.Minute), "expired at"},
		{"unknown", "", "n1", bootstrap.New(m.ca.Pin()).String(), "is not known here"},
		{"a name that is taken", "", "taken", good, "the name taken belongs to another machine"},
		{"joined elsewhere", joined, "joined", other.token(time.Hour), "another cluster than the one that this machine has joined"},
	} {
		if x.dir == "" {
			x.dir = t.TempDir()
		}
		_, err := m.join(x.dir, x.node, x.token)
		if err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.name, err)
		} else if secret := strings.Split(x.token+"..", ".")[1]; secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error shows the token: %v", x.name, err)
		}
	}
}

// A master that is not there yet is waited for; nothing but a handshake goes to a server with another CA.
func TestWaitsForAMaster(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	knocked := make(chan struct{})
	go func() { // at first nobody is there who speaks TLS
		c, err := l.Accept()
		if err == nil {
			c.Close()
		}
		l.Close()
		close(knocked)
	}()
	ca, err := certs.OpenAuthority(t.TempDir(), "to come")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := identity.Open(ctx, identity.Config{Server: "https://" + at, Token: bootstrap.New(ca.Pin()).String(), Dir: t.TempDir(), Node: "n", Log: quiet})
		ended <- err
	}()
	<-knocked
	pair, err := ca.Server(t.TempDir(), "s", []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS() // without the CA: not to be believed
	if err != nil {
		t.Fatal(err)
	}
	impostor, err := tls.Listen("tcp", at, &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := impostor.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if sent, _ := io.ReadAll(c); len(sent) > 0 {
		t.Errorf("it sent %q", sent)
	}
	impostor.Close()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "its CA is not the one") {
		t.Error(err)
	}
	cancel()
}

// A request that nobody has decided yet is waited for, and a person may decide it.
func TestApprovedByHand(t *testing.T) {
	m, dir := newMaster(t, "127.0.0.1:0"), t.TempDir()
	tok := bootstrap.New(m.ca.Pin())
	s := bootstrap.SecretOf(tok, bootstrap.Options{Expires: time.Now().Add(time.Hour)}) // for no group: nothing is approved by itself
	if _, err := m.admin.Create(t.Context(), s, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	joined := make(chan error, 1)
	go func() {
		_, err := m.join(dir, "n1", tok.String())
		joined <- err
	}()
	w, err := m.admin.Watch(t.Context(), api.CertificateSigningRequests, client.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e := <-w.Events()
	csr := e.Object.DeepCopyObject().(*certificatesv1.CertificateSigningRequest)
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "test"}}
	if _, err := m.admin.Update(t.Context(), csr, client.WriteOptions{Subresource: api.ApprovalSubresource}); err != nil {
		t.Fatal(err)
	}
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	if n := m.requests(); n != 1 {
		t.Errorf("%d requests were made", n)
	}
}
