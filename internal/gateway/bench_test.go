package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"minik8s/internal/gateway/routes"
)

// gatewayRole marks a process that is only a gateway, to the endpoint 10.9.0.1:8080 at 10.8.0.1.
const gatewayRole = "MINIK8S_BENCH_GATEWAY"

// runGateway is that process. It ends with its standard input.
func runGateway() int {
	var services kind[*corev1.Service]
	var endpointSlices kind[*discoveryv1.EndpointSlice]
	f := &front{set: routes.Set{Routes: []routes.Route{route("bench", "/", func(r *routes.Route) {
		r.Backend = routes.Backend{Address: netip.MustParseAddrPort("10.9.0.1:8080")}
	})}}}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := New(Config{}, &services, &endpointSlices, f).Run(ctx, func() {}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// nginxConfig is a backend that answers at 10.9.0.1:8080, and a reverse proxy to it at 10.8.0.2, as Debian's defaults are.
const nginxConfig = `daemon off;
error_log stderr crit;
pid %[1]s/pid;
worker_processes %[2]s;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  sendfile on; tcp_nopush on; keepalive_requests 1000000000;
  %[3]s
}
`

const nginxBackend = `server { listen 10.9.0.1:8080; location / { return 200 "%s"; } }`

const nginxProxy = `upstream backend { server 10.9.0.1:8080; keepalive 256; keepalive_requests 1000000000; }
server { listen 10.8.0.2:80; location / { proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";
  proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-Proto $scheme; } }`

// process starts a program until the benchmark ends.
func process(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

func nginx(b *testing.B, path, workers, what string) {
	dir := b.TempDir()
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConfig, dir, workers, what), 0o600); err != nil {
		b.Fatal(err)
	}
	process(b, exec.Command(path, "-c", conf, "-p", dir))
}

// load sends requests on n connections for a time; it returns their latencies.
func load(b *testing.B, address string, n int, d time.Duration) (all []time.Duration) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	end := time.Now().Add(d)
	for range n {
		clients.Go(func() {
			c, err := net.Dial("tcp", address)
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			request, in := []byte("GET /path/to/page HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n"), bufio.NewReader(c)
			list := make([]time.Duration, 0, 1<<14)
			for at := time.Now(); at.Before(end); {
				if _, err := c.Write(request); err != nil {
					b.Error(err)
					return
				}
				length, ok := 0, false
				for {
					line, err := in.ReadSlice('\n')
					if err != nil {
						b.Error(err)
						return
					}
					ok = ok || bytes.HasPrefix(line, []byte("HTTP/1.1 200"))
					if v, is := bytes.CutPrefix(line, []byte("Content-Length: ")); is {
						_, _ = fmt.Sscan(string(v), &length)
					}
					if len(line) == 2 {
						break
					}
				}
				if _, err := in.Discard(length); err != nil || !ok || length == 0 {
					b.Errorf("an answer of %d bytes, 200: %v, %v", length, ok, err)
					return
				}
				now := time.Now()
				list, at = append(list, now.Sub(at)), now
			}
			mu.Lock()
			all = append(all, list...)
			mu.Unlock()
		})
	}
	clients.Wait()
	slices.Sort(all)
	return all
}

// BenchmarkAgainstNginx measures the gateway and nginx (NGINX_PATH, or in the path), by turns, before the same backend.
func BenchmarkAgainstNginx(b *testing.B) {
	path := os.Getenv("NGINX_PATH")
	if path == "" {
		var err error
		if path, err = exec.LookPath("nginx"); err != nil {
			b.Skip("there is no nginx")
		}
	}
	nginx(b, path, "1", fmt.Sprintf(nginxBackend, strings.Repeat("x", 1024)))
	nginx(b, path, fmt.Sprint(runtime.NumCPU()), nginxProxy)
	own := exec.Command(os.Args[0])
	own.Env = append(os.Environ(), gatewayRole+"=1")
	process(b, own)
	for _, a := range []string{"10.9.0.1:8080", "10.8.0.2:80", "10.8.0.1:80"} {
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			c, err := net.Dial("tcp", a)
			if err == nil {
				c.Close()
				break
			}
			if time.Now().After(end) {
				b.Fatal(err)
			}
		}
	}
	for _, conns := range []int{1, 32} {
		b.Run(fmt.Sprintf("connections=%d", conns), func(b *testing.B) {
			rate, p99 := map[string]float64{}, map[string]time.Duration{}
			const rounds, each = 5, 800 * time.Millisecond
			var quiet [2][]time.Duration
			for range rounds {
				for i, a := range []string{"10.8.0.1:80", "10.8.0.2:80"} {
					list := load(b, a, conns, each)
					if len(list) == 0 {
						b.Fatal("no answers")
					}
					rate[a] += float64(len(list)) / each.Seconds() / rounds
					quiet[i] = append(quiet[i], list[len(list)*99/100])
				}
			}
			for i, a := range []string{"10.8.0.1:80", "10.8.0.2:80"} {
				slices.Sort(quiet[i])
				p99[a] = quiet[i][rounds/2]
			}
			b.ReportMetric(rate["10.8.0.1:80"], "req/s")
			b.ReportMetric(rate["10.8.0.2:80"], "nginx-req/s")
			b.ReportMetric(rate["10.8.0.1:80"]/rate["10.8.0.2:80"], "of-nginx")
			b.ReportMetric(float64(p99["10.8.0.1:80"].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(p99["10.8.0.2:80"].Microseconds())/1000, "nginx-p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
