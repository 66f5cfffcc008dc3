// Command hello is the program of the image minik8s/hello: a small web server that tells who it is,
// for demonstrations and tests.
//
//	/              the host's name
//	/env           the environment, or with ?name= one variable of it
//	/files/PATH    a file or the names in a directory
//	/echo          the request's body
//	/exit?code=N   ends the process
//	/higher /lower add and remove CPU load, a tenth of a core each time
//	/healthz       ok, or 503 after /sick until /well
//
// It listens on PORT or -port (80; a list separated by commas) and, for load, on :8090 (LOAD_PORT; 0 for none).
// On SIGTERM it ends at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
		go l.burn()
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
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		name, err := os.Hostname()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, name)
	})
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
	mux.HandleFunc("/higher", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%d%%\n", l.add(10)) })
	mux.HandleFunc("/lower", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%d%%\n", l.add(-10)) })
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

// load uses a share of the CPU, in percent of one core.
type load struct {
	mu      sync.Mutex
	changed *sync.Cond
	percent int
}

func newLoad() *load {
	l := &load{}
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *load) add(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.percent = min(max(l.percent+n, 0), 100*runtime.NumCPU())
	l.changed.Broadcast()
	return l.percent
}

// some waits until there is any and returns how much.
func (l *load) some() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.percent == 0 {
		l.changed.Wait()
	}
	return l.percent
}

// burn is one core's part of it: busy for its share of each tenth of a second.
func (l *load) burn() {
	const period = 100 * time.Millisecond
	for {
		busy := period * time.Duration(l.some()) / time.Duration(100*runtime.NumCPU())
		for end := time.Now().Add(busy); time.Now().Before(end); {
		}
		time.Sleep(period - busy)
	}
}

func fromEnv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
