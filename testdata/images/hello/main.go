// Command hello is the program of the image minik8s/hello: a small web server that tells who it is,
// for demonstrations and tests.
//
//	/              the host's name; with ?work=10ms after so much CPU time of one core
//	/env           the environment, or with ?name= one variable of it
//	/files/PATH    a file or the names in a directory
//	/echo          the request's body
//	/exit?code=N   ends the process
//	/higher /lower add and remove CPU load, a tenth of a core each time
//	/metrics       requests for the name and their work, and the load, for Prometheus
//	/healthz       ok, or 503 after /sick until /well
//	/datagram?to=  sends a UDP datagram to HOST:PORT, and says what is answered
//
// It listens on PORT or -port (80; a list separated by commas), also by UDP, where it answers each datagram with the host's name, and, for load, on :8090 (LOAD_PORT; 0 for none).
// On SIGTERM it ends at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	ports := flag.String("port", fromEnv("PORT", "80"), "ports to listen on, separated by commas")
	loadPort := flag.String("load-port", fromEnv("LOAD_PORT", "8090"), "port for /higher and /lower; 0 for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	l := newLoad()
	for range runtime.NumCPU() {
		go l.run()
	}
	mux := routes(l)
	list := strings.Split(*ports, ",")
	if *loadPort != "0" {
		list = append(list, *loadPort)
	}
	failed := make(chan error, len(list))
	for _, p := range list {
		srv := &http.Server{Addr: ":" + p, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- srv.ListenAndServe() }()
		go func() { failed <- serveDatagrams(":" + p) }()
	}
	fmt.Println("listening on", strings.Join(list, " "))
	select {
	case <-ctx.Done():
		fmt.Println("asked to end")
	case err := <-failed:
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func routes(l *load) *http.ServeMux {
	mux := http.NewServeMux()
	var sick atomic.Bool
	done := &work{}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if err := done.do(r.URL.Query().Get("work")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		name, err := os.Hostname()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, name)
	})
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }) //nolint:errcheck // a test's image
	mux.HandleFunc("GET /env", func(w http.ResponseWriter, r *http.Request) {
		if name := r.URL.Query().Get("name"); name != "" {
			fmt.Fprintln(w, os.Getenv(name))
			return
		}
		fmt.Fprintln(w, strings.Join(os.Environ(), "\n"))
	})
	mux.HandleFunc("GET /files/{path...}", serveFile)
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	mux.HandleFunc("/exit", func(_ http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.URL.Query().Get("code"))
		if err != nil {
			code = 0
		}
		os.Exit(code)
	})
	mux.HandleFunc("GET /datagram", func(w http.ResponseWriter, r *http.Request) {
		said, err := datagram(r.Context(), r.URL.Query().Get("to"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintln(w, said)
	})
	mux.HandleFunc("/higher", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%d%%\n", l.add(10)) })
	mux.HandleFunc("/lower", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%d%%\n", l.add(-10)) })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { writeMetrics(w, done, l) })
	mux.HandleFunc("/sick", func(http.ResponseWriter, *http.Request) { sick.Store(true) })
	mux.HandleFunc("/well", func(http.ResponseWriter, *http.Request) { sick.Store(false) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			http.Error(w, "sick", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// maxDatagram is how much of a datagram is read.
const maxDatagram = 512

// serveDatagrams answers each datagram with the host's name.
func serveDatagrams(at string) error {
	c, err := net.ListenPacket("udp", at)
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	for b := make([]byte, maxDatagram); ; {
		_, from, err := c.ReadFrom(b)
		if err != nil {
			return err
		}
		c.WriteTo([]byte(name), from) //nolint:errcheck // who asked asks again
	}
}

// datagram sends one and waits a second for the answer.
func datagram(ctx context.Context, to string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "udp", to)
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // nothing is lost by it
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		return "", err
	}
	b := make([]byte, maxDatagram)
	n, err := c.Read(b)
	return string(b[:n]), err
}

func serveFile(w http.ResponseWriter, r *http.Request) {
	path := filepath.Join("/", r.PathValue("path"))
	entries, err := os.ReadDir(path)
	if err == nil {
		for _, e := range entries {
			fmt.Fprintln(w, e.Name())
		}
		return
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write(data)
}

func fromEnv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
