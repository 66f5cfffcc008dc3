package dns

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/dns/names"
	"minik8s/internal/informer"
)

// records are the Services and their endpoints, by name and by address, and the hosts of DNS objects.
type records struct {
	services *informer.Informer[*corev1.Service]
	slices   *informer.Informer[*discoveryv1.EndpointSlice]

	mu    sync.RWMutex
	hosts map[string]netip.Addr // with a dot at their end
	// of are the slices of each Service.
	of map[types.NamespacedName][]*discoveryv1.EndpointSlice
	// addresses are the Services whose own an address is, and endpoints the slices that have one.
	addresses map[netip.Addr]types.NamespacedName
	endpoints map[netip.Addr][]*discoveryv1.EndpointSlice
	// namespaces counts the Services of each namespace.
	namespaces map[string]int
}

func newRecords(services *informer.Informer[*corev1.Service], endpointSlices *informer.Informer[*discoveryv1.EndpointSlice], objects *informer.Informer[*minik8s.DNS]) *records {
	r := &records{hosts: map[string]netip.Addr{}, services: services, slices: endpointSlices, of: map[types.NamespacedName][]*discoveryv1.EndpointSlice{},
		addresses: map[netip.Addr]types.NamespacedName{}, endpoints: map[netip.Addr][]*discoveryv1.EndpointSlice{}, namespaces: map[string]int{}}
	services.Index(r.indexService)
	endpointSlices.Index(r.indexSlice)
	objects.Index(r.indexHost)
	return r
}

// indexHost notes a DNS object's host. No two objects have the same one; an object that takes over another's may be seen
// before the other is gone.
func (r *records) indexHost(old, now *minik8s.DNS) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if host, at, ok := hostOf(old); ok && r.hosts[host] == at {
		delete(r.hosts, host)
	}
	if host, at, ok := hostOf(now); ok {
		r.hosts[host] = at
	}
}

// hostOf is where a DNS object's host is.
func hostOf(obj *minik8s.DNS) (host string, at netip.Addr, ok bool) {
	if obj == nil || obj.Spec.Host == "" {
		return "", netip.Addr{}, false
	}
	at, err := netip.ParseAddr(obj.Spec.ServiceAddress)
	return strings.ToLower(obj.Spec.Host) + ".", at, err == nil
}

// host is the address of a DNS object's host.
func (r *records) host(name string) (netip.Addr, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	at, ok := r.hosts[name]
	return at, ok
}

func keyOf(svc *corev1.Service) types.NamespacedName {
	return types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
}

func (r *records) indexService(old, now *corev1.Service) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old != nil {
		for _, a := range clusterIPs(old) {
			if r.addresses[a] == keyOf(old) {
				delete(r.addresses, a)
			}
		}
		if r.namespaces[old.Namespace]--; r.namespaces[old.Namespace] == 0 {
			delete(r.namespaces, old.Namespace)
		}
	}
	if now != nil {
		for _, a := range clusterIPs(now) {
			r.addresses[a] = keyOf(now)
		}
		r.namespaces[now.Namespace]++
	}
}

// serviceOf is the Service of a slice.
func serviceOf(s *discoveryv1.EndpointSlice) (types.NamespacedName, bool) {
	name := s.Labels[discoveryv1.LabelServiceName]
	return types.NamespacedName{Namespace: s.Namespace, Name: name}, name != "" && s.AddressType != discoveryv1.AddressTypeFQDN
}

func (r *records) indexSlice(old, now *discoveryv1.EndpointSlice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old != nil {
		if key, ok := serviceOf(old); ok {
			drop(r.of, key, old)
			each(old, func(a netip.Addr, _ *discoveryv1.Endpoint) { drop(r.endpoints, a, old) })
		}
	}
	if now != nil {
		if key, ok := serviceOf(now); ok {
			r.of[key] = append(r.of[key], now)
			each(now, func(a netip.Addr, _ *discoveryv1.Endpoint) { r.endpoints[a] = append(r.endpoints[a], now) })
		}
	}
}

// drop takes the slice of that name out of a list.
func drop[K comparable](from map[K][]*discoveryv1.EndpointSlice, key K, s *discoveryv1.EndpointSlice) {
	left := slices.DeleteFunc(slices.Clone(from[key]), func(o *discoveryv1.EndpointSlice) bool { return o.Name == s.Name && o.Namespace == s.Namespace })
	if len(left) == 0 {
		delete(from, key)
		return
	}
	from[key] = left
}

// each calls f with every address of a slice's ready endpoints.
func each(s *discoveryv1.EndpointSlice, f func(netip.Addr, *discoveryv1.Endpoint)) {
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if !ptr.Deref(e.Conditions.Ready, true) {
			continue
		}
		for _, text := range e.Addresses {
			if a, err := netip.ParseAddr(text); err == nil {
				f(a, e)
			}
		}
	}
}

// service is the Service of that name.
func (r *records) service(namespace, name string) (*corev1.Service, bool) {
	return r.services.Get(namespace, name)
}

// clusterIPs are a Service's own addresses.
func clusterIPs(svc *corev1.Service) (out []netip.Addr) {
	if !api.HasClusterIP(svc) {
		return nil
	}
	for _, text := range append([]string{svc.Spec.ClusterIP}, svc.Spec.ClusterIPs...) {
		if a, err := netip.ParseAddr(text); err == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// slicesOf are the slices of a Service; the result is not changed later.
func (r *records) slicesOf(svc *corev1.Service) []*discoveryv1.EndpointSlice {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.of[keyOf(svc)]
}

// hasNamespace reports whether a namespace has a Service.
func (r *records) hasNamespace(name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.namespaces[name] > 0
}

// hostname is the label of an endpoint below its Service's name.
func hostname(a netip.Addr, e *discoveryv1.Endpoint) string {
	if h := ptr.Deref(e.Hostname, ""); h != "" {
		return strings.ToLower(h)
	}
	return names.Dashed(a)
}

// reverse are the names of an address, without the domain: of the Service that has it, or of endpoints of headless Services.
func (r *records) reverse(a netip.Addr) (out []string) {
	r.mu.RLock()
	svc, is := r.addresses[a]
	in := r.endpoints[a]
	r.mu.RUnlock()
	if is {
		return []string{svc.Name + "." + svc.Namespace + ".svc."}
	}
	for _, s := range in {
		key, _ := serviceOf(s)
		svc, ok := r.service(key.Namespace, key.Name)
		if !ok || svc.Spec.ClusterIP != corev1.ClusterIPNone {
			continue
		}
		each(s, func(has netip.Addr, e *discoveryv1.Endpoint) {
			name := hostname(a, e) + "." + key.Name + "." + key.Namespace + ".svc."
			if has == a && !slices.Contains(out, name) {
				out = append(out, name)
			}
		})
	}
	return out
}
