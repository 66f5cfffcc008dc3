package roles_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/function/image"
	"minik8s/internal/imageregistry/registrytest"
	"minik8s/internal/machine"
)

// Images of functions lie in another registry that wants a login: pushed and pulled there, made again when somebody has removed them, and
// removed with their function; a cluster that takes its own registry again makes them anew.
func TestFunctionsInAnotherRegistry(t *testing.T) {
	r := registrytest.Start(t, true)
	file := r.AuthFile(false)
	c := newFunctions(t, 18095, "--function-registry", r.Host+"/here", "--registry-authfile", file)
	ready := func(name string) (*minik8s.Function, string) {
		t.Helper()
		f, err := client.Get[*minik8s.Function](t.Context(), c.api, client.Key{Kind: api.Functions, Namespace: "default", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if cond := apimeta.FindStatusCondition(f.Status.Conditions, minik8s.FunctionReady); cond != nil && f.Status.ObservedGeneration == f.Generation {
			return f, cond.Reason + ": " + cond.Message
		}
		return f, ""
	}
	images := func(name string) []string { return r.Images("here/functions/default/" + name) }
	c.add("says", "def run(arg):\n    return 'one ' + arg\n", nil)
	c.eventually("it says that it may not push", func() bool { _, why := ready("says"); return why != "" })
	if _, why := ready("says"); !strings.HasPrefix(why, "RegistryFailed: the registry "+r.Host+"/here") || !strings.Contains(why, "--registry-authfile") {
		t.Error(why)
	}
	if status, body, h := c.post("/says", "x"); status != 503 || h.Get("X-Minik8s-Fault") != "platform" || !strings.Contains(body, "RegistryFailed") {
		t.Errorf("a call of a function without an image: %d %s", status, body)
	}
	said := c.out.String() + c.ask("GET", "/apis/minik8s.io/v1/functions", "") + c.ask("GET", "/api/v1/events", "")
	r.WriteAuth(file, true)
	c.eventually("it is tried again", func() bool { _, why := ready("says"); return strings.HasPrefix(why, "Ready:") })
	f, _ := ready("says")
	if all := images("says"); len(all) != 1 || f.Status.Image != r.Host+"/here/functions/default/says@"+all[0] {
		t.Errorf("%s, and there are %v", f.Status.Image, all)
	}
	if status, body, _ := c.post("/says", "x"); status != 200 || body != "one x" {
		t.Errorf("a call: %d %s", status, body)
	}
	if pods := c.instances("says"); len(pods) != 1 || pods[0].Spec.Containers[0].Image != f.Status.Image || len(pods[0].Spec.ImagePullSecrets) != 0 {
		t.Errorf("instances: %+v", pods)
	}
	if !slices.ContainsFunc(r.Asked(), func(q string) bool { return strings.HasPrefix(q, "GET /v2/here/functions/default/says/blobs/") }) {
		t.Error("no node has pulled it there")
	}
	// Another version takes its place, and the old one goes when no instance has it.
	two := filepath.Join(t.TempDir(), "two.py")
	if err := os.WriteFile(two, []byte("def run(arg):\n    return 'two ' + arg\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := f.Status.Image
	c.ctl("func", "update", "says", "-p", two)
	c.eventually("the new one answers", func() bool { _, body, _ := c.post("/says", "x"); return body == "two x" })
	c.eventually("one image", func() bool { all := images("says"); return len(all) == 1 && !strings.HasSuffix(old, all[0]) })
	// Its operator removes an image that no node has yet.
	c.add("other", "def run(arg):\n    return 'other ' + arg\n", nil)
	c.eventually("its image", func() bool { return len(images("other")) == 1 })
	r.Remove("here/functions/default/other", images("other")[0])
	if status, body, _ := c.post("/other", "x"); status != 200 || body != "other x" {
		t.Errorf("when its image was removed: %d %s", status, body)
	}
	// The registry goes away: who is there goes on, and what is removed meanwhile goes later.
	r.Stop()
	if status, body, _ := c.post("/says", "x"); status != 200 || body != "two x" {
		t.Errorf("without the registry: %d %s", status, body)
	}
	c.ctl("func", "rm", "-f", "other")
	c.eventually("its removal fails", func() bool { return strings.Contains(c.out.String(), "it is tried again") })
	r.Again()
	c.eventually("it is removed", func() bool { return len(images("other")) == 0 })
	said += c.out.String() + c.ask("GET", "/apis/minik8s.io/v1/functions", "") + c.ask("GET", "/api/v1/events", "")
	if strings.Contains(said, registrytest.Password) {
		t.Error("the password is told")
	}
	if _, err := os.Stat(filepath.Join(c.dir, "registry")); !os.IsNotExist(err) {
		t.Errorf("the cluster's own registry was begun: %v", err)
	}
	// Without the setting its image is made anew, in the cluster's own registry.
	c.stop()
	c.args = slices.DeleteFunc(c.args, func(a string) bool { return a == "--function-registry" || a == r.Host+"/here" })
	c.api = c.up()
	c.eventually("its image is here", func() bool {
		f, _ := ready("says")
		return strings.HasPrefix(f.Status.Image, "registry.minik8s.io:5000/")
	})
	c.eventually("an instance of it", func() bool {
		status, body, _ := c.post("/says", "x")
		pods := c.instances("says")
		return status == 200 && body == "two x" && slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return strings.HasPrefix(p.Spec.Containers[0].Image, "registry.minik8s.io:5000/") && p.Status.Phase == corev1.PodRunning
		})
	})
	if n := len(images("says")); n != 1 {
		t.Errorf("what is in a registry that is not used any more is not touched: %d images", n)
	}
}

// A registry on another machine is spoken with by HTTPS alone, and the authorities that the system trusts are trusted; one that removes nothing
// is no reason not to use it.
func TestFunctionsInARegistryOverTLS(t *testing.T) {
	r := registrytest.StartTLS(t, machine.Address, false)
	t.Setenv("SSL_CERT_FILE", r.CAFile) // the daemon's system
	c := newFunctions(t, 18098, "--function-registry", r.Host, "--registry-authfile", r.AuthFile(true))
	for _, name := range []string{"a", "b"} {
		c.add(name, "def run(arg):\n    return 'hello ' + arg\n", nil)
		c.eventually("an answer", func() bool { status, body, _ := c.post("/"+name, "x"); return status == 200 && body == "hello x" })
		if n := len(r.Images("functions/default/" + name)); n != 1 {
			t.Errorf("%d images", n)
		}
	}
	for n, name := range []string{"a", "b"} {
		r.Asked()
		c.ctl("func", "rm", "-f", name)
		c.eventually("its image is asked to be removed", func() bool {
			return slices.ContainsFunc(r.Asked(), func(q string) bool {
				return strings.HasPrefix(q, "DELETE /v2/functions/default/"+name+"/manifests/sha256:")
			})
		})
		if n == 0 {
			c.eventually("it says that nothing is removed", func() bool { return strings.Contains(c.out.String(), "its operator's to remove") })
		}
	}
	c.stop()
	if n := strings.Count(c.out.String(), "its operator's to remove"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// The cluster's own registry has a port of its own, where clients are known by certificates of the cluster and have the rights that they
// have below /v2/ of the API. A port that another program has delays nothing, and is taken when it is free.
func TestRegistryPort(t *testing.T) {
	needRoot(t)
	const at = "127.0.0.1:5000"
	other, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, "--registry-address", at)
	c := p.up()
	p.eventually("it says so", func() bool { return strings.Contains(p.out.String(), "images cannot be pushed and pulled there") })
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(p.dir, "pki/ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	// as is the way of whom a certificate in pki is, or nobody.
	as := func(who string) http.RoundTripper {
		cfg := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		if who != "" {
			pair, err := tls.LoadX509KeyPair(filepath.Join(p.dir, "pki", who+".crt"), filepath.Join(p.dir, "pki", who+".key"))
			if err != nil {
				t.Fatal(err)
			}
			cfg.Certificates = []tls.Certificate{pair}
		}
		way := &http.Transport{TLSClientConfig: cfg}
		t.Cleanup(way.CloseIdleConnections)
		return way
	}
	p.eventually("it listens", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close() //nolint:errcheck // nothing was said
		}
		return err == nil
	})
	ref, err := name.NewTag(at + "/images/default/web:1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.OpenBase("../build/images/hello.tar", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithTransport(as("admin"))); err != nil {
		t.Fatal(err)
	}
	if got, err := remote.Get(ref, remote.WithTransport(as("admin"))); err != nil || got.Size == 0 {
		t.Errorf("what was pushed: %v", err)
	}
	if _, err := remote.Get(ref, remote.WithTransport(as(""))); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a client without a certificate: %v", err)
	}
	for _, x := range []struct {
		who, method, path string
		status            int
	}{
		{"etcd", "GET", "/v2/images/default/web/manifests/1", 403}, {"etcd", "POST", "/v2/images/default/web/blobs/uploads/", 403}, // somebody without rights
		{"admin", "GET", "/api/v1/pods", 404}, {"admin", "GET", "/v2/../api/v1/pods", 301}, {"admin", "GET", "/healthz", 404}, {"", "GET", "/version", 404}, {"", "GET", "/v2/", 401},
	} {
		q, err := http.NewRequest(x.method, "https://"+at+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := as(x.who).RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || resp.StatusCode != x.status || strings.Contains(string(body), "PodList") {
			t.Errorf("%q %s %s: %s, %v: %s", x.who, x.method, x.path, resp.Status, err, body)
		}
	}
	// It is the same registry.
	if body := p.ask("GET", "/v2/images/default/web/tags/list", ""); !strings.Contains(body, `"tags":["1"]`) {
		t.Errorf("below /v2/ of the API: %s", body)
	}
	// Nodes have it for pods of the namespace that is in its name.
	web := shell("web", "")
	web.Spec.Containers[0] = corev1.Container{Name: "web", Image: "registry.minik8s.io:5000/images/default/web:1", ImagePullPolicy: corev1.PullAlways}
	p.create(c, web)
	address := p.running(c, "web").Status.PodIP
	p.eventually("answered", func() bool { return answer(address) == "web" })
	p.stop()
}
