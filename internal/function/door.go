package function

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/controller/loop"
	"minik8s/internal/function/plan"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Door answers on the port to which the Services of functions lead, on every master. It is open while there is such a Service.
type Door struct {
	server *Server
	opts   informer.Options
	domain string
	listen func(ctx context.Context) (net.Listener, error)
	inside func(ctx context.Context, from netip.Addr) bool
	home   func(ctx context.Context, from netip.Addr) string

	mu     sync.Mutex
	at     map[string]loop.Key // functions, by their address
	named  map[string]loop.Key // by namespace and name of their Service
	change chan struct{}
}

// DoorConfig is what a Door needs.
type DoorConfig struct {
	// Domain is the cluster's, as cluster.local.
	Domain string
	// Listen opens the port; it tries until it can, or ctx ends.
	Listen func(ctx context.Context) (net.Listener, error)
	// Inside says who may call: pods and nodes of the cluster.
	Inside func(ctx context.Context, from netip.Addr) bool
	// Home is the namespace of the pod that has an address; empty: none has.
	Home func(ctx context.Context, from netip.Addr) string
}

// NewDoor makes a Door.
func NewDoor(s *Server, cfg DoorConfig) *Door {
	return &Door{server: s, opts: informer.Options{Log: s.cfg.Log}, domain: cfg.Domain, listen: cfg.Listen, inside: cfg.Inside, home: cfg.Home,
		at: map[string]loop.Key{}, named: map[string]loop.Key{}, change: make(chan struct{}, 1)}
}

// Run works until ctx ends.
func (d *Door) Run(ctx context.Context, ready func()) error {
	functions := informer.New[*minik8s.Function](d.server.client, api.Functions, d.opts)
	functions.OnChange(d.follow)
	tasks := supervise.NewTasks(ctx)
	tasks.Go(func(ctx context.Context) error { return functions.Run(ctx, ready) })
	tasks.Go(d.open)
	return tasks.Wait()
}

func (d *Door) follow(old, now *minik8s.Function) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.at)
	for _, f := range []*minik8s.Function{old, now} {
		if f == nil || f.Status.Address == "" {
			continue
		}
		name := plan.Service(f.Name) + "." + f.Namespace
		if f == now {
			d.at[f.Status.Address], d.named[name] = keyOf(f), keyOf(f)
			continue
		}
		if d.at[f.Status.Address] == keyOf(f) {
			delete(d.at, f.Status.Address)
		}
		delete(d.named, name)
	}
	if (before == 0) != (len(d.at) == 0) {
		select {
		case d.change <- struct{}{}:
		default:
		}
	}
}

// open serves while any function has an address.
func (d *Door) open(ctx context.Context) error {
	for d.until(ctx, true) {
		l, err := d.listen(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		serving, stop := context.WithCancel(ctx)
		tasks := supervise.NewTasks(serving)
		tasks.Go(func(ctx context.Context) error { return Serve(ctx, l, d) })
		tasks.Go(func(ctx context.Context) error {
			defer stop()
			d.until(ctx, false)
			return nil
		})
		err = tasks.Wait()
		stop()
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// until waits until functions have addresses, or none has. It returns false when ctx ends first.
func (d *Door) until(ctx context.Context, wanted bool) bool {
	for {
		d.mu.Lock()
		is := len(d.at) > 0
		d.mu.Unlock()
		if is == wanted {
			return true
		}
		select {
		case <-d.change:
		case <-ctx.Done():
			return false
		}
	}
}

// whose is the function that a request is for, by the name or the address that its caller has used. A name alone is one of the caller's namespace.
func (d *Door) whose(ctx context.Context, host string, from netip.Addr) (loop.Key, error) {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	found := d.find(host)
	if len(found) > 1 {
		home := d.home(ctx, from)
		found = slices.DeleteFunc(found, func(key loop.Key) bool { return key.Namespace != home })
	}
	if len(found) != 1 {
		return loop.Key{}, fmt.Errorf("no function has the address %q", host)
	}
	return found[0], nil
}

// find are the functions of an address or a name: several, if it is a name without a namespace.
func (d *Door) find(host string) (found []loop.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if key, ok := d.at[host]; ok {
		return []loop.Key{key}
	}
	name := strings.TrimSuffix(strings.TrimSuffix(host, "."+d.domain), ".svc")
	if key, ok := d.named[name]; ok {
		return []loop.Key{key}
	}
	for n, key := range d.named { // without its namespace, as pods of that namespace may say it
		if service, _, _ := strings.Cut(n, "."); service == name {
			found = append(found, key)
		}
	}
	return found
}

// ServeHTTP implements http.Handler: POST to any path of a function's address.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !d.inside(r.Context(), from.Addr().Unmap()) {
		refuse(w, http.StatusForbidden, "functions' addresses are for the cluster's pods and nodes")
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "functions are called by POST")
		return
	}
	key, err := d.whose(r.Context(), r.Host, from.Addr().Unmap())
	if err != nil {
		refuse(w, http.StatusNotFound, "%v", err)
		return
	}
	d.server.callPlainly(w, r, key.Namespace, key.Name)
}
