package apiserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/aggregation"
	"minik8s/internal/apiserver"
	"minik8s/internal/apiserver/aggregator"
	"minik8s/internal/certs"
	"minik8s/internal/client/local"
	"minik8s/internal/controller/apiservice"
	"minik8s/internal/controller/clustertrust"
	"minik8s/internal/informer"
	"minik8s/internal/registry"
)

// extended is a cluster with what APIServices need, and the controllers that look after it.
type extended struct {
	*cluster
	front    *certs.Authority
	services *aggregator.Services
}

// startExtended starts one in which these groups are answered in process.
func startExtended(t *testing.T, groups ...aggregation.Group) *extended {
	t.Helper()
	x := &extended{}
	var err error
	if x.front, err = certs.OpenAuthority(t.TempDir(), "front-proxy-ca"); err != nil {
		t.Fatal(err)
	}
	pair, err := x.front.Client(t.TempDir(), "client", aggregator.FrontProxyName)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	x.cluster = startWith(t, 0, talkers{}, func(c *apiserver.Config) {
		x.services = aggregator.NewServices(aggregator.ServicesConfig{Registry: c.Registry, Cert: certs.Use(cert), Dial: here})
		c.Local, c.Services, c.RequestTimeout = groups, x.services, 2*time.Second
	})
	x.create("/api/v1/namespaces", `{"metadata":{"name":"kube-system"}}`)
	log := slog.New(slog.DiscardHandler)
	as := func(part string) *local.Client { return local.New(x.reg, registry.Part(part)) }
	x.run(clustertrust.New(as("clustertrust-controller"), clustertrust.Trust{ClientCA: x.ca.Cert, FrontProxyCA: x.front.Cert, FrontProxy: aggregator.FrontProxyName,
		User: aggregator.UserHeader, UID: aggregator.UIDHeader, Group: aggregator.GroupHeader, ExtraPrefix: aggregator.ExtraPrefix}, log).Run)
	served := func() (list []schema.GroupVersion, changed <-chan struct{}) {
		for _, g := range groups {
			list = append(list, schema.GroupVersion{Group: g.Group, Version: g.Version})
		}
		return list, nil
	}
	x.run(apiservice.New(as("apiservice-controller"), informer.NewViews(as("views"), log),
		apiservice.Config{Served: served, Ask: x.services.Check, Again: 20 * time.Millisecond}, log).Run)
	return x
}

// run runs a part until the test ends.
func (x *extended) run(part func(ctx context.Context, ready func()) error) {
	x.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		part(ctx, sync.OnceFunc(func() { close(ready) })) //nolint:errcheck // it ends with its context
	}()
	<-ready
	x.t.Cleanup(func() { cancel(); <-ended })
}

// extension is an extension API server in a pod, as upstream's library makes them: it knows whom to believe from the
// cluster's ConfigMap, and asks the cluster whether users may do what they want.
type extension struct {
	x       *extended
	token   string // of its service account
	front   *x509.CertPool
	allowed []string
	serve   http.HandlerFunc // whatever it does for a user who may

	mu   sync.Mutex
	seen []http.Header // of requests by users
	down bool
	hung chan struct{} // not nil: requests get no answer; closed with the first whose client has gone
}

// extend puts an extension API server behind a Service of this name in the namespace default, and an APIService before it.
// spec is what the APIService says beside.
func (x *extended) extend(name, group, spec string, serve http.HandlerFunc) *extension {
	x.t.Helper()
	e := &extension{x: x, serve: serve, token: x.token("default", name)}
	serving, err := certs.OpenAuthority(x.t.TempDir(), "serving-ca")
	if err != nil {
		x.t.Fatal(err)
	}
	pair, err := serving.Server(x.t.TempDir(), "serving", []string{name + ".default.svc"})
	if err != nil {
		x.t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		x.t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(e)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert}
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	srv.StartTLS()
	x.t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		x.t.Fatal(err)
	}
	if spec == "" {
		spec = `"caBundle":"` + base64.StdEncoding.EncodeToString(serving.Cert) + `"`
	}
	x.create("/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(`{"metadata":{"name":"v1.%s"},"spec":{"group":%q,"version":"v1",
		"groupPriorityMinimum":100,"versionPriority":100,"service":{"namespace":"default","name":%q},%s}}`, group, group, name, spec))
	e.learn()
	x.podWithAddress(name, "10.244.0.7")
	x.service(name, `{"name":"https","port":443}`, `{"addresses":["10.244.0.7"],"targetRef":{"kind":"Pod","namespace":"default","name":"`+name+`"}}`,
		`{"name":"https","port":`+u.Port()+`}`)
	return e
}

// api sends a request to the cluster with the extension's own token.
func (e *extension) api(method, path, body string) (int, string) {
	return e.x.do(e.x.user(""), method, path, body, "Authorization", "Bearer "+e.token)
}

// learn reads whom to believe. The ConfigMap may be a moment away.
func (e *extension) learn() {
	for {
		code, body := e.api("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "")
		if code == 404 {
			continue
		}
		var cm struct{ Data map[string]string }
		if err := json.Unmarshal([]byte(body), &cm); err != nil || code != 200 {
			e.x.t.Fatal(code, body, err)
		}
		e.front = x509.NewCertPool()
		if !e.front.AppendCertsFromPEM([]byte(cm.Data["requestheader-client-ca-file"])) || !strings.Contains(cm.Data["client-ca-file"], "BEGIN CERTIFICATE") ||
			json.Unmarshal([]byte(cm.Data["requestheader-allowed-names"]), &e.allowed) != nil || cm.Data["requestheader-username-headers"] != `["X-Remote-User"]` ||
			cm.Data["requestheader-group-headers"] != `["X-Remote-Group"]` || cm.Data["requestheader-extra-headers-prefix"] != `["X-Remote-Extra-"]` {
			e.x.t.Fatal(cm.Data)
		}
		return
	}
}

// believes reports whether a request comes by the front proxy.
func (e *extension) believes(req *http.Request) bool {
	if len(req.TLS.PeerCertificates) == 0 {
		return false
	}
	cert := req.TLS.PeerCertificates[0]
	_, err := cert.Verify(x509.VerifyOptions{Roots: e.front, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil && slices.Contains(e.allowed, cert.Subject.CommonName)
}

// ServeHTTP implements http.Handler.
func (e *extension) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	group, user := strings.Split(req.URL.Path, "/")[2], req.Header.Get("X-Remote-User")
	e.mu.Lock()
	down, hung := e.down, e.hung
	e.mu.Unlock()
	if hung != nil {
		<-req.Context().Done()
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.hung != nil {
			close(e.hung)
			e.hung = nil
		}
		return
	}
	switch {
	case down:
		http.Error(w, "closed for today", http.StatusInternalServerError)
		return
	case !e.believes(req):
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	case req.URL.Path == "/apis/"+group+"/v1":
		fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1","resources":[{"name":"boats","singularName":"boat","namespaced":true,"kind":"Boat","verbs":["get","list"],"shortNames":["bt"]}]}`, group) //nolint:errcheck // a test
		return
	}
	e.mu.Lock()
	e.seen = append(e.seen, req.Header.Clone())
	e.mu.Unlock()
	groups, _ := json.Marshal(req.Header["X-Remote-Group"]) //nolint:errcheck // strings
	code, body := e.api("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", fmt.Sprintf(`{"spec":{"user":%q,"groups":%s,
		"resourceAttributes":{"verb":"list","group":%q,"resource":"boats","namespace":"default"}}}`, user, groups, group))
	if code != http.StatusCreated {
		http.Error(w, "the cluster does not answer: "+body, http.StatusInternalServerError)
		return
	}
	if !strings.Contains(body, `"allowed":true`) {
		http.Error(w, user+" may not", http.StatusForbidden)
		return
	}
	e.serve(w, req)
}

// close has it fail from now on, or again answer.
func (e *extension) close(down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = down
}

// last is the header of the newest request by a user.
func (e *extension) last() http.Header {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.seen) == 0 {
		return nil
	}
	return e.seen[len(e.seen)-1]
}

// until waits for a condition of an APIService, as its table shows it.
func (x *extended) until(name, want string) {
	x.t.Helper()
	body := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		_, body = x.do(x.root(), "GET", "/apis/apiregistration.k8s.io/v1/apiservices/"+name, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		if strings.Contains(body, `"`+want+`"`) {
			return
		}
	}
	x.t.Fatalf("%s is not %s: %s", name, want, body)
}

// says serves a text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, text+" "+req.URL.RequestURI()) } //nolint:errcheck // a test
}
