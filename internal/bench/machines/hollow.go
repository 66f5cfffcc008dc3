package machines

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/bench/bed"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/events"
	"minik8s/internal/kubelet/node"
)

const (
	hollowRest  = 30 * time.Second // over which processor time is measured
	hollowJoins = 16               // that register at once
)

// Hollow measures one master with so many workers: each has the real connection, identity, heartbeats and watches of a
// kubelet, and no containers. They run in this process, so that what the daemon uses is the master's alone.
func Hollow(r *bed.Report, workers int) error {
	return bed.WithDaemon(false, func(d *bed.Daemon) error {
		before, _, _ := bed.Memory(d)
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		began := time.Now()
		if err := joinHollow(ctx, d, workers, &running); err != nil {
			return err
		}
		joining := time.Since(began)
		if err := d.Until(2*time.Minute, func() bool { n, err := readyNodes(d); return err == nil && n >= workers }); err != nil {
			return err
		}
		time.Sleep(20 * time.Second) // until memory that only the joining needed has been returned
		used, at := bed.CPU(d), time.Now()
		time.Sleep(hollowRest)
		cores := (bed.CPU(d) - used) / time.Since(at).Seconds()
		pss, anon, _ := bed.Memory(d)
		n := float64(workers)
		r.Add(fmt.Sprintf("%d hollow workers on a master: CPU at rest", workers), cores, "cores", "<= 0.5 cores", "a heartbeat of each every 10 s, and its status every 5 min to all others")
		r.Add("  memory (PSS)", pss/1024, "MiB", "<= 300 MiB", fmt.Sprintf("%.0f MiB without them; three watches each", before/1024))
		r.Add("  anonymous, of each", anon/n, "KiB", "", "")
		r.Add("  joining, all of them", joining.Seconds(), "s", "", "each Node is told to all that are there already")
		return nil
	}, "--role=master", "--cluster-cidr=10.128.0.0/12")
}

// joinHollow starts the workers. running counts what ends with ctx.
func joinHollow(ctx context.Context, d *bed.Daemon, workers int, running *sync.WaitGroup) error {
	ca, err := certs.OpenAuthority(filepath.Join(d.Dir, "pki"), "minik8s-ca")
	if err != nil {
		return err
	}
	keys, err := os.MkdirTemp("", "minik8s-hollow-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(keys) //nolint:errcheck // a directory of our own
	turn := make(chan struct{}, hollowJoins)
	errs := make(chan error, workers)
	var joining sync.WaitGroup
	for i := range workers {
		joining.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			if err := joinOne(ctx, d, ca, keys, i, running); err != nil {
				errs <- err
			}
		})
	}
	joining.Wait()
	close(errs)
	return <-errs
}

func joinOne(ctx context.Context, d *bed.Daemon, ca *certs.Authority, keys string, i int, running *sync.WaitGroup) error {
	name := fmt.Sprintf("hollow-%d", i)
	pair, err := ca.Client(keys, name, "system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	cert, err := pair.TLS()
	if err != nil {
		return err
	}
	c, err := remote.New(remote.Config{Server: "https://127.0.0.1:6443", CA: ca.Cert, UserAgent: "minik8sd",
		Identity: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }})
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	n := node.New(node.Config{Name: name, IP: netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}), DataDir: keys, MaxPods: 110,
		Version: "hollow", HeartbeatInterval: 10 * time.Second, Now: time.Now, Log: quiet}, c, node.NoRuntime{}, events.New(c, "kubelet", name, quiet))
	if err := n.Register(ctx); err != nil {
		return err
	}
	running.Go(func() {
		// Real machines do not start at the same moment, nor do their heartbeats.
		select {
		case <-time.After(time.Duration(rand.Int64N(int64(10 * time.Second)))):
			n.Run(ctx)
		case <-ctx.Done():
		}
		c.Close()
	})
	for _, w := range []struct{ path, fields string }{{"/apis/minik8s.io/v1/peers", ""}, {"/api/v1/pods", "spec.nodeName=" + name}} {
		running.Go(func() { follow(ctx, c, w.path, w.fields) })
	}
	return nil
}

// follow holds a watch open and reads what it brings, as it comes: what a worker makes of it is not the master's work.
func follow(ctx context.Context, c *remote.Client, path, fields string) {
	q := url.Values{"watch": {"1"}, "sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "allowWatchBookmarks": {"true"}}
	if fields != "" {
		q.Set("fieldSelector", fields)
	}
	for ctx.Err() == nil {
		resp, err := c.Do(ctx, http.MethodGet, path, q, "", nil)
		if err == nil {
			io.Copy(io.Discard, resp.Body) //nolint:errcheck // it ends at some time, and begins again
			resp.Body.Close()              //nolint:errcheck // as above
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// readyNodes is how many nodes of the daemon are Ready.
func readyNodes(d *bed.Daemon) (int, error) {
	c, err := remote.New(remote.Config{Socket: filepath.Join(d.Dir, "api.sock")})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	nodes, _, err := client.All[*corev1.Node](context.Background(), c, api.Nodes, client.ListOptions{})
	n := 0
	for _, x := range nodes {
		if nodeReady(x) {
			n++
		}
	}
	return n, err
}
