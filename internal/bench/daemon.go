package main

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

// binary is the daemon that `make build` built.
const binary = "bin/minik8sd"

// daemon is a minik8sd under test.
type daemon struct {
	cmd    *exec.Cmd
	dir    string
	cgroup string
	args   []string
	log    bytes.Buffer
	began  time.Time
	http   *http.Client // over the unix socket
}

// startDaemon starts a daemon on an empty directory and returns at once.
func startDaemon(images bool, args ...string) (*daemon, error) {
	dir, err := os.MkdirTemp("", "minik8s-bench-")
	if err != nil {
		return nil, err
	}
	d := &daemon{dir: dir, cgroup: fmt.Sprintf("/minik8s-bench-%d", os.Getpid())}
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
	d.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var nd net.Dialer
		return nd.DialContext(ctx, "unix", filepath.Join(dir, "api.sock"))
	}}}
	d.args = args
	return d, d.launch()
}

// launch starts the daemon on its directory. It may be called again after the daemon has ended.
func (d *daemon) launch() error {
	d.cmd = exec.Command(binary, append([]string{"--data-dir", d.dir, "--cgroup-root", d.cgroup}, d.args...)...)
	d.cmd.Stdout, d.cmd.Stderr = io.Discard, &d.log
	d.began = time.Now()
	return d.cmd.Start()
}

// withDaemon runs do with a ready daemon and removes the daemon afterwards. images says whether to load the images.
// args are additional flags.
func withDaemon(images bool, do func(d *daemon) error, args ...string) (err error) {
	d, err := startDaemon(images, args...)
	if err != nil {
		return err
	}
	defer func() {
		if serr := d.stop(); err == nil {
			err = serr
		} else {
			err = fmt.Errorf("%w; the daemon's log: %s", err, d.log.String())
		}
	}()
	if err := d.ready(); err != nil {
		return err
	}
	if images {
		if err := d.until(30*time.Second, func() bool { return imagePresent(d) }); err != nil {
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

// ready waits until every part of the daemon is up.
func (d *daemon) ready() error {
	return d.until(30*time.Second, func() bool {
		resp, err := d.http.Get("http://minik8s/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close() //nolint:errcheck // nothing is read
		return resp.StatusCode == http.StatusOK
	})
}

// until calls done every millisecond until it is true. It fails after limit.
func (d *daemon) until(limit time.Duration, done func() bool) error {
	for end := time.Now().Add(limit); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not done after %s; the daemon's log:\n%s", limit, d.log.String())
		}
	}
	return nil
}

// stop ends the daemon and removes everything that it created.
func (d *daemon) stop() error {
	err := d.cmd.Process.Signal(syscall.SIGTERM)
	if werr := d.cmd.Wait(); err == nil && werr != nil {
		err = fmt.Errorf("the daemon: %w\n%s", werr, d.log.String())
	}
	out, cerr := exec.Command(binary, "clean", "--data-dir", d.dir, "--cgroup-root", d.cgroup).CombinedOutput()
	if cerr != nil {
		cerr = fmt.Errorf("clean: %w: %s", cerr, out)
	}
	return errors.Join(err, cerr, os.RemoveAll(d.dir)) // the images belong to the bench
}

// do sends a request over the socket and decodes the answer into out, which may be nil.
func (d *daemon) do(method, path string, body, out any) error {
	return request(d.http, "http://minik8s", method, path, body, out)
}

// request sends an object, if there is one, and decodes the answer into out, which may be nil.
func request(c *http.Client, base, method, path string, body, out any) error {
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
		req.Header.Set("Content-Type", "application/json")
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

// secure returns a TLS client with the admin's certificate and its own connections.
func (d *daemon) secure(conns int) (*http.Client, string, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(d.dir, "admin.kubeconfig"))
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

// imagePresent reports whether the node has the images.
func imagePresent(d *daemon) bool {
	var nodes struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if d.do("GET", "/api/v1/nodes", nil, &nodes) != nil || len(nodes.Items) == 0 {
		return false
	}
	var images struct{ Items []struct{ Tags []string } }
	return d.do("GET", "/minik8s/v1/nodes/"+nodes.Items[0].Metadata.Name+"/images", nil, &images) == nil && len(images.Items) >= 2
}
