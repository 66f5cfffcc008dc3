package function

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/function/plan"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// addressed is what a function's status says of its address: the address, and the condition; nil: it asks for none.
type addressed struct {
	address   string
	condition *metav1.Condition
}

// keepAddress has a function's Service be as the function asks. What stands in its way is in the condition; the error is one of the API
// alone.
func (f *Controller) keepAddress(ctx context.Context, fn *minik8s.Function) (addressed, error) {
	name := plan.Service(fn.Name)
	have, exists := f.services.Get(fn.Namespace, name)
	ours := exists && metav1.IsControlledBy(have, fn)
	if fn.Spec.Address == "" {
		if !ours {
			return addressed{}, nil
		}
		return addressed{}, f.removeService(ctx, have)
	}
	no := func(reason, format string, args ...any) addressed {
		return addressed{condition: &metav1.Condition{Type: minik8s.FunctionAddressed, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}}
	}
	switch {
	case f.port == 0:
		return no("NoPort", "the masters have --function-port=0: functions get no address here"), nil
	case exists && !ours:
		return no("NameTaken", "there is another Service %s", name), nil
	case exists && fn.Spec.Address != minik8s.AddressAuto && have.Spec.ClusterIP != fn.Spec.Address:
		if err := f.removeService(ctx, have); err != nil { // an address cannot be changed
			return addressed{}, err
		}
		return no("Changing", "the Service gets its new address"), nil // its end brings us here again
	case !exists:
		made, err := f.client.Create(ctx, plan.ServiceOf(fn, f.port, owner.Ref(fn)), client.WriteOptions{})
		switch {
		case apierrors.IsAlreadyExists(err): // the informer will show it
			return no("Changing", "the Service is about to be seen"), nil
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
			f.loop.AddAfter(keyOf(fn), again) // whoever has the address may give it up
			return no("Refused", "%v", err), nil
		case err != nil:
			return addressed{}, err
		}
		have = made.(*corev1.Service)
	case have.DeletionTimestamp != nil:
		return no("Changing", "the Service is about to go"), nil
	}
	if err := f.keepSlice(ctx, have); err != nil {
		return addressed{}, err
	}
	return addressed{have.Spec.ClusterIP, &metav1.Condition{Type: minik8s.FunctionAddressed, Status: metav1.ConditionTrue, Reason: "Ready",
		Message: fmt.Sprintf("POST http://%s/ from pods and nodes", have.Spec.ClusterIP)}}, nil
}

func (f *Controller) removeService(ctx context.Context, s *corev1.Service) error {
	_, err := f.client.Delete(ctx, client.KeyOf(s), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// keepSlice has the Service of a function lead to the masters.
func (f *Controller) keepSlice(ctx context.Context, service *corev1.Service) error {
	want := plan.SliceOf(service, f.masters(), f.port, owner.Ref(service))
	if len(want.Endpoints) == 0 {
		return nil // no master is known yet: its announcement brings us here again
	}
	have, ok := f.slices.Get(want.Namespace, want.Name)
	if !ok {
		if _, err := f.client.Create(ctx, want, client.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	}
	upd := have.DeepCopy()
	upd.Labels, upd.Annotations, upd.OwnerReferences, upd.Ports, upd.Endpoints = want.Labels, want.Annotations, want.OwnerReferences, want.Ports, want.Endpoints
	if apiequality.Semantic.DeepEqual(have, upd) {
		return nil
	}
	_, err := f.client.Update(ctx, upd, client.WriteOptions{})
	return err
}

// ofMasters reports whether a slice is one of the API's own Service.
func ofMasters(s *discoveryv1.EndpointSlice) bool {
	return s != nil && s.Namespace == metav1.NamespaceDefault && s.Labels[discoveryv1.LabelServiceName] == api.KubernetesService
}

func (f *Controller) masters() []string {
	var of []*discoveryv1.EndpointSlice
	for _, s := range f.slices.List() {
		if ofMasters(s) {
			of = append(of, s)
		}
	}
	return plan.Masters(of)
}

// followAddresses has functions reconciled whose Service or slice has changed; all of them when masters come or go.
func (f *Controller) followAddresses() {
	name := func(o api.Object) (string, bool) {
		n, ok := o.GetAnnotations()[plan.NameAnnotation]
		return n, ok
	}
	f.services.OnChange(func(old, now *corev1.Service) {
		s := now
		if now == nil {
			s = old
		}
		if n, ok := name(s); ok {
			f.loop.Add(loop.Key{Namespace: s.Namespace, Name: n})
		}
	})
	f.slices.OnChange(func(old, now *discoveryv1.EndpointSlice) {
		s := now
		if now == nil {
			s = old
		}
		if n, ok := name(s); ok {
			f.loop.Add(loop.Key{Namespace: s.Namespace, Name: n})
		}
		if ofMasters(old) || ofMasters(now) {
			for _, fn := range f.functions.List() {
				if fn.Spec.Address != "" {
					f.loop.Add(keyOf(fn))
				}
			}
		}
	})
}

// Door answers on the port to which the Services of functions lead, on every master. It is open while there is such a Service.
type Door struct {
	server *Server
	opts   informer.Options
	domain string
	listen func(ctx context.Context) (net.Listener, error)
	inside func(ctx context.Context, from netip.Addr) bool

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
}

// NewDoor makes a Door.
func NewDoor(s *Server, cfg DoorConfig) *Door {
	return &Door{server: s, opts: informer.Options{Log: s.cfg.Log}, domain: cfg.Domain, listen: cfg.Listen, inside: cfg.Inside,
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
	for {
		select {
		case <-d.change:
		case <-ctx.Done():
			return nil
		}
		d.mu.Lock()
		wanted := len(d.at) > 0
		d.mu.Unlock()
		if !wanted {
			continue
		}
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
			for {
				select {
				case <-d.change:
				case <-ctx.Done():
					return nil
				}
				d.mu.Lock()
				wanted := len(d.at) > 0
				d.mu.Unlock()
				if !wanted {
					return nil
				}
			}
		})
		err = tasks.Wait()
		stop()
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// whose is the function that a request is for, by the name or the address that its caller has used.
func (d *Door) whose(host string) (loop.Key, error) {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	d.mu.Lock()
	defer d.mu.Unlock()
	if key, ok := d.at[host]; ok {
		return key, nil
	}
	name := strings.TrimSuffix(strings.TrimSuffix(host, "."+d.domain), ".svc")
	if key, ok := d.named[name]; ok {
		return key, nil
	}
	var found []loop.Key
	for n, key := range d.named { // without its namespace, as pods of that namespace may say it
		if service, _, _ := strings.Cut(n, "."); service == name {
			found = append(found, key)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return loop.Key{}, fmt.Errorf("no function has the address %q", host)
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
	key, err := d.whose(r.Host)
	if err != nil {
		refuse(w, http.StatusNotFound, "%v", err)
		return
	}
	d.server.callPlainly(w, r, key.Namespace, key.Name)
}
