package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/registry"
)

var quiet = slog.New(slog.DiscardHandler)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func authority(t *testing.T) *certs.Authority {
	t.Helper()
	ca, err := certs.OpenAuthority(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func pin(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	p, err := certs.PinOf(key)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	kubeletClient = certificatesv1.KubeAPIServerClientKubeletSignerName
	serving       = certificatesv1.KubeletServingSignerName
	anybody       = certificatesv1.KubeAPIServerClientSignerName
)

// asked describes a request.
type asked struct {
	signer string
	cn, o  string
	dns    []string
	ips    []string
	usages []certificatesv1.KeyUsage
}

func (a asked) request(t *testing.T, key *ecdsa.PrivateKey) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	var ips []netip.Addr
	for _, ip := range a.ips {
		ips = append(ips, netip.MustParseAddr(ip))
	}
	var orgs []string
	if a.o != "" {
		orgs = []string{a.o}
	}
	req, err := certs.NewRequest(key, pkix.Name{CommonName: a.cn, Organization: orgs}, a.dns, ips)
	if err != nil {
		t.Fatal(err)
	}
	if a.usages == nil {
		last := certificatesv1.UsageClientAuth
		if a.signer == serving {
			last = certificatesv1.UsageServerAuth
		}
		a.usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, last}
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "r-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: req, SignerName: a.signer, Usages: a.usages}}
}

func node(name, key string, ips ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if key != "" {
		n.Annotations = map[string]string{api.MachineKeyAnnotation: key}
	}
	for _, ip := range ips {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return n
}

// What becomes of a request, by who asks, for what, and what the cluster has. The API writes who asks.
func TestDecisions(t *testing.T) { synctest.Test(t, testDecisions) }

func testDecisions(t *testing.T) {
	mine, ca := newKey(t), authority(t)
	t.Cleanup(func() { <-time.After(2 * time.Minute) }) // so that no timer of this bubble outlives it
	joiner := registry.User{Name: "system:bootstrap:abcdef", Groups: []string{bootstrap.Group, bootstrap.GroupWorkers, registry.GroupAuthenticated}}
	guest := registry.User{Name: "system:bootstrap:abcdef", Groups: []string{bootstrap.Group, registry.GroupAuthenticated}}
	const issued, refused, waits, failed = "issued", "denied", "waits", "failed"
	kubelet := asked{signer: kubeletClient, cn: "system:node:n1", o: "system:nodes"}
	serves := func(ips ...string) asked {
		return asked{signer: serving, cn: "system:node:n1", o: "system:nodes", dns: []string{"n1"}, ips: ips}
	}
	named := func(name string) asked {
		return asked{signer: serving, cn: "system:node:n1", o: "system:nodes", dns: []string{name}}
	}
	for _, x := range []struct {
		name    string
		by      registry.User
		asked   asked
		nodes   []*corev1.Node
		approve bool // by a person
		want    string
	}{
		{"a new machine", joiner, kubelet, nil, false, issued},
		{"a machine whose Node was made before", joiner, kubelet, []*corev1.Node{node("n1", "")}, false, issued},
		{"a machine that comes again", joiner, kubelet, []*corev1.Node{node("n1", pin(t, mine))}, false, issued},
		{"a machine with another's name", joiner, kubelet, []*corev1.Node{node("n1", "other")}, false, refused},
		{"a token for something else", guest, kubelet, nil, false, waits},
		{"a renewal", registry.NodeUser("n1"), kubelet, []*corev1.Node{node("n1", pin(t, mine))}, false, issued},
		{"a renewal with another key", registry.NodeUser("n1"), kubelet, []*corev1.Node{node("n1", "other")}, false, refused},
		{"a node's certificate for somebody else", registry.System, kubelet, nil, false, waits},
		{"a user's", joiner, asked{signer: anybody, cn: "alice"}, nil, false, waits},
		{"a user's, approved", joiner, asked{signer: anybody, cn: "alice"}, nil, true, issued},
		{"a node by a user's signer", joiner, asked{signer: anybody, cn: "system:node:n1", o: "system:nodes"}, nil, false, waits},
		{"a group beside nodes", joiner, asked{signer: kubeletClient, cn: "system:node:n1", o: "system:masters"}, nil, false, waits},
		{"a group beside nodes, approved", joiner, asked{signer: kubeletClient, cn: "system:node:n1", o: "system:masters"}, nil, true, failed},
		{"a client with addresses", joiner, asked{signer: kubeletClient, cn: "system:node:n1", o: "system:nodes", ips: []string{"10.0.0.1"}}, nil, false, waits},
		{"a client that serves", joiner, asked{signer: kubeletClient, cn: "system:node:n1", o: "system:nodes",
			usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth}}, nil, true, failed},
		{"a signer of others", joiner, asked{signer: "example.com/x", cn: "system:node:n1", o: "system:nodes"}, nil, true, waits},
		{"serving, its own address", registry.NodeUser("n1"), serves("10.0.0.1"), []*corev1.Node{node("n1", "", "10.0.0.1")}, false, issued},
		{"serving, not its address", registry.NodeUser("n1"), serves("10.0.0.9"), []*corev1.Node{node("n1", "", "10.0.0.1")}, false, waits},
		{"serving, the loopback", registry.NodeUser("n1"), serves("127.0.0.1"), []*corev1.Node{node("n1", "", "127.0.0.1")}, false, refused},
		{"serving, the API's address", registry.NodeUser("n1"), serves("10.96.0.1"), []*corev1.Node{node("n1", "", "10.96.0.1")}, false, refused},
		{"serving, its other name's address", registry.NodeUser("n1"), serves("10.0.0.1"),
			[]*corev1.Node{node("n1", "k", "10.0.0.1"), node("was", "k", "10.0.0.1")}, false, issued},
		{"serving, the API's name", registry.NodeUser("n1"), named("kubernetes.default.svc"), []*corev1.Node{node("n1", "", "kubernetes.default.svc")}, false, refused},
		{"serving, the loopback's name", registry.NodeUser("n1"), named("localhost"), []*corev1.Node{node("n1", "", "localhost")}, false, refused},
		{"serving, any name", registry.NodeUser("n1"), named("*.corp"), []*corev1.Node{node("n1", "", "*.corp")}, false, refused},
		{"serving, its name in capitals", registry.NodeUser("n1"), named("N1"), []*corev1.Node{node("n1", "")}, false, refused},
		{"a machine with the API's name", joiner, asked{signer: kubeletClient, cn: "system:node:kubernetes", o: "system:nodes"}, nil, false, refused},

		{"serving, another's address too", registry.NodeUser("n1"), serves("10.0.0.1"),
			[]*corev1.Node{node("n1", "", "10.0.0.1"), node("n2", "", "10.0.0.1")}, false, waits},
		{"serving, another's name", registry.NodeUser("n1"), asked{signer: serving, cn: "system:node:n1", o: "system:nodes", dns: []string{"n2"}},
			[]*corev1.Node{node("n1", "", "n2"), node("n2", "")}, false, refused},
		{"serving, with a join token", joiner, serves("10.0.0.1"), []*corev1.Node{node("n1", "", "10.0.0.1")}, false, waits},
		{"serving, no Node yet", registry.NodeUser("n1"), serves("10.0.0.1"), nil, false, waits},
		{"serving, for nothing", registry.NodeUser("n1"), asked{signer: serving, cn: "system:node:n1", o: "system:nodes"}, []*corev1.Node{node("n1", "")}, false, waits},
	} {
		c := ct.New(t)
		for _, n := range x.nodes {
			ct.Create(c, n.DeepCopy())
		}
		c.Start(New(c.As("certificates-controller"), c.Views(), ca, apiNames, quiet).Run)
		made, err := c.AsUser(x.by).Create(c.Context(), x.asked.request(t, mine), client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		get := func() *certificatesv1.CertificateSigningRequest {
			got, err := client.Get[*certificatesv1.CertificateSigningRequest](c.Context(), c.Admin(), client.KeyOf(made))
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if x.approve {
			upd := get().DeepCopy()
			upd.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "me"}}
			if _, err := c.Admin().Update(c.Context(), upd, client.WriteOptions{Subresource: "approval"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		got, state := get(), waits
		switch {
		case len(got.Status.Certificate) > 0:
			state = issued
			verify(t, ca, got, x.asked)
		case has(got, certificatesv1.CertificateFailed):
			state = failed
		case has(got, certificatesv1.CertificateDenied):
			state = refused
		}
		if state != x.want {
			t.Errorf("%s: %s, not %s: %+v", x.name, state, x.want, got.Status.Conditions)
		}
	}
}

// verify checks that a certificate is signed by the CA and says what was asked for.
func verify(t *testing.T, ca *certs.Authority, csr *certificatesv1.CertificateSigningRequest, a asked) {
	t.Helper()
	block, _ := pem.Decode(csr.Status.Certificate)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	usage := x509.ExtKeyUsageClientAuth
	if a.signer == serving {
		usage = x509.ExtKeyUsageServerAuth
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: ca.Pool(), KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		t.Error(err)
	}
	if cert.IsCA || cert.Subject.CommonName != a.cn || len(cert.IPAddresses) != len(a.ips) || len(cert.ExtKeyUsage) != 1 {
		t.Errorf("%+v", cert)
	}
}

func apiNames() ([]string, error) {
	return []string{"kubernetes", "kubernetes.default.svc", "localhost", "10.96.0.1"}, nil
}

// A serving request that came before its Node, and while the masters' addresses could not be told, is decided when the Node has its addresses, and old requests go.
func TestWaitsForTheNodeAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, key, c := authority(t), newKey(t), ct.New(t)
		away := true
		c.Start(New(c.As("certificates-controller"), c.Views(), ca, func() ([]string, error) {
			if away { // only for the first time
				away = false
				return nil, errors.New("the masters are not known")
			}
			return apiNames()
		}, quiet).Run)
		ask := asked{signer: serving, cn: "system:node:n1", o: "system:nodes", ips: []string{"10.0.0.1"}}
		made, err := c.AsUser(registry.NodeUser("n1")).Create(c.Context(), ask.request(t, key), client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pending := ct.Create(c, asked{signer: anybody, cn: "alice"}.request(t, key))
		ct.Create(c, node("n1", "", "10.0.0.1"))
		ct.Until(c, "signed", api.CertificateSigningRequests, func(all []*certificatesv1.CertificateSigningRequest) bool {
			for _, r := range all {
				if r.Name == made.GetName() {
					return len(r.Status.Certificate) > 0
				}
			}
			return false
		})
		left := func() (names []string) {
			list, _, err := client.All[*certificatesv1.CertificateSigningRequest](c.Context(), c.Admin(), api.CertificateSigningRequests, client.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				names = append(names, r.Name)
			}
			return names
		}
		<-time.After(keepDone + time.Minute)
		synctest.Wait()
		if got := left(); len(got) != 1 || got[0] != pending.Name {
			t.Errorf("after an hour %v are left", got)
		}
		<-time.After(keepPending)
		synctest.Wait()
		if got := left(); len(got) != 0 {
			t.Errorf("after a day %v are left", got)
		}
	})
}
