package bed

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// Binary is the daemon that `make build` built.
const Binary = "bin/minik8sd"

// Daemon is a minik8sd under test.
type Daemon struct {
	Cmd    *exec.Cmd // of the last Launch
	Dir    string
	Cgroup string
	args   []string
	Log    bytes.Buffer
	Began  time.Time    // the last Launch
	HTTP   *http.Client // over the unix socket
}

// StartDaemon starts a daemon on an empty directory and returns at once.
func StartDaemon(images bool, args ...string) (*Daemon, error) {
	dir, err := os.MkdirTemp("", "minik8s-bench-")
	if err != nil {
		return nil, err
	}
	d := &Daemon{Dir: dir, Cgroup: fmt.Sprintf("/minik8s-bench-%d", os.Getpid())}
	if images {
		archives, err := filepath.Glob("build/images/*.tar")
		if err != nil {
			return nil, err
		}
		if len(archives) == 0 {
			return nil, errors.New("no images in build/images: run make images")
		}
		if err := os.Mkdir(filepath.Join(dir, "images"), 0o755); err != nil {
			return nil, err
		}
		for _, a := range archives {
			if err := os.Link(a, filepath.Join(dir, "images", filepath.Base(a))); err != nil {
				if err := copyFile(a, filepath.Join(dir, "images", filepath.Base(a))); err != nil {
					return nil, err
				}
			}
		}
	}
	d.HTTP = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var nd net.Dialer
		return nd.DialContext(ctx, "unix", filepath.Join(dir, "api.sock"))
	}}}
	d.args = args
	return d, d.Launch()
}

// Launch starts the daemon on its directory. It may be called again after the daemon has ended.
func (d *Daemon) Launch() error {
	d.Cmd = exec.Command(Binary, append([]string{"--data-dir", d.Dir, "--cgroup-root", d.Cgroup}, d.args...)...)
	d.Cmd.Stdout, d.Cmd.Stderr = io.Discard, &d.Log
	d.Began = time.Now()
	return d.Cmd.Start()
}

// WithDaemon runs do with a ready daemon and removes the daemon afterwards. images says whether to load the images.
// args are additional flags.
func WithDaemon(images bool, do func(d *Daemon) error, args ...string) (err error) {
	d, err := StartDaemon(images, args...)
	if err != nil {
		return err
	}
	defer func() {
		if serr := d.Stop(); err == nil {
			err = serr
		} else {
			err = fmt.Errorf("%w; the daemon's log: %s", err, d.Log.String())
		}
	}()
	if err := d.Ready(); err != nil {
		return err
	}
	if images {
		if err := d.Until(30*time.Second, func() bool { return ImagePresent(d) }); err != nil {
			return err
		}
	}
	return do(d)
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

// Ready waits until every part of the daemon is up.
func (d *Daemon) Ready() error {
	return d.Until(30*time.Second, func() bool {
		resp, err := d.HTTP.Get("http://minik8s/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close() //nolint:errcheck // nothing is read
		return resp.StatusCode == http.StatusOK
	})
}

// Until calls done every millisecond until it is true. It fails after limit.
func (d *Daemon) Until(limit time.Duration, done func() bool) error {
	for end := time.Now().Add(limit); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not done after %s; the daemon's log:\n%s", limit, d.Log.String())
		}
	}
	return nil
}

// Stop ends the daemon and removes everything that it created.
func (d *Daemon) Stop() error {
	err := d.Cmd.Process.Signal(syscall.SIGTERM)
	if werr := d.Cmd.Wait(); err == nil && werr != nil {
		err = fmt.Errorf("the daemon: %w\n%s", werr, d.Log.String())
	}
	out, cerr := exec.Command(Binary, "clean", "--data-dir", d.Dir, "--cgroup-root", d.Cgroup).CombinedOutput()
	if cerr != nil {
		cerr = fmt.Errorf("clean: %w: %s", cerr, out)
	}
	return errors.Join(err, cerr, os.RemoveAll(d.Dir)) // the images belong to the bench
}

// Do sends a request over the socket and decodes the answer into out, which may be nil.
func (d *Daemon) Do(method, path string, body, out any) error {
	return Request(d.HTTP, "http://minik8s", method, path, body, out)
}

// Apply applies an object at its path, as a server-side apply by a manager named bench.
func (d *Daemon) Apply(path string, body any) error {
	return request(d.HTTP, "http://minik8s", "PATCH", path+"?fieldManager=bench", "application/apply-patch+yaml", body, nil)
}

// Request sends an object, if there is one, and decodes the answer into out, which may be nil.
func Request(c *http.Client, base, method, path string, body, out any) error {
	return request(c, base, method, path, "application/json", body, out)
}

func request(c *http.Client, base, method, path, media string, body, out any) error {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, base+path, in)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", media)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// Secure returns a TLS client with the admin's certificate and its own connections.
func (d *Daemon) Secure(conns int) (*http.Client, string, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(d.Dir, "admin.kubeconfig"))
	if err != nil {
		return nil, "", err
	}
	cert, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData)
	if err != nil {
		return nil, "", err
	}
	tr := &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns,
		// One request at a time on each connection, as the figure says, instead of many on one as with HTTP/2.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	pool, err := rootPool(cfg.CAData)
	if err != nil {
		return nil, "", err
	}
	tr.TLSClientConfig = &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool}
	return &http.Client{Transport: tr}, cfg.Host, nil
}

// rootPool has the certificates that answers are checked with.
func rootPool(pem []byte) (*x509.CertPool, error) {
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, errors.New("the kubeconfig has no CA")
	}
	return p, nil
}

// ImagePresent reports whether the node has the images.
func ImagePresent(d *Daemon) bool {
	var nodes struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if d.Do("GET", "/api/v1/nodes", nil, &nodes) != nil || len(nodes.Items) == 0 {
		return false
	}
	var images struct{ Items []struct{ Tags []string } }
	return d.Do("GET", "/minik8s/v1/nodes/"+nodes.Items[0].Metadata.Name+"/images", nil, &images) == nil && len(images.Items) >= 2
}
