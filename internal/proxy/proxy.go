package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/informer"
	"minik8s/internal/nft"
	"minik8s/internal/proxy/plan"
)

// Ruleset is what of the kernel's packet filter the proxy needs.
type Ruleset interface {
	nft.Kept
	Walker(t nft.Table, local func(netip.Addr) bool) *nft.Walker
}

// Source is what a Proxy follows: an informer of a kind in all namespaces, which the Proxy runs.
type Source[T api.Object] interface {
	OnChange(informer.Handler[T])
	OnList(func())
	Get(namespace, name string) (T, bool)
	List() []T
	Run(ctx context.Context, ready func()) error
}

var (
	_ Source[*corev1.Service]            = (*informer.Informer[*corev1.Service])(nil)
	_ Source[*discoveryv1.EndpointSlice] = (*informer.Informer[*discoveryv1.EndpointSlice])(nil)
)

// Config is what a Proxy is made from.
type Config struct {
	// Table is the name of this daemon's table: Tables and the four digits that the pods' network has in its own.
	Table string
	// Links is the prefix of the names of pods' links on this host.
	Links string
	Node  plan.Node
	// Pods is this node's range of pod addresses; it may be unknown yet.
	Pods    netip.Prefix
	Ruleset Ruleset // nil: the kernel's
	Log     *slog.Logger
}

// Proxy is the data path of Services on this node.
type Proxy struct {
	cfg      Config
	services Source[*corev1.Service]
	slices   Source[*discoveryv1.EndpointSlice]
	wake     chan struct{} // something is dirty
	cut      chan struct{} // flows may be stale

	seen struct { // what the informers have told
		sync.Mutex
		dirty  map[types.NamespacedName]bool
		slices map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice
		lists  map[string]bool
		node   *plan.Node // a new one
		pods   *netip.Prefix
	}

	mu     sync.Mutex // state, and what follows it
	state  *state
	keeper *nft.Keeper // writes state to the kernel
	broken map[flow]bool
	swept  bool // flows that an earlier run has left were looked at
	doors  *doors
}

// New makes a Proxy that knows the Services and EndpointSlices of all namespaces from their informers.
func New(cfg Config, services Source[*corev1.Service], endpointSlices Source[*discoveryv1.EndpointSlice]) *Proxy {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Ruleset == nil {
		cfg.Ruleset = nft.NewKernel()
	}
	p := &Proxy{cfg: cfg, services: services, slices: endpointSlices, wake: make(chan struct{}, 1),
		cut: make(chan struct{}, 1), broken: map[flow]bool{}}
	p.seen.dirty, p.seen.lists = map[types.NamespacedName]bool{}, map[string]bool{}
	p.seen.slices = map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice{}
	p.state = newState(cfg.Table, renderer{links: cfg.Links, node: cfg.Node, pods: cfg.Pods})
	p.keeper = nft.NewKeeper(nft.KeeperConfig{Ruleset: cfg.Ruleset, Table: cfg.Table, Wanted: func() nft.Table { return p.state.table() }, Lock: &p.mu,
		What: "the rules of Services", Log: cfg.Log})
	p.doors = newDoors(cfg.Log)
	services.OnChange(func(old, now *corev1.Service) {
		p.dirty(nameOf(old, now))
	})
	endpointSlices.OnChange(p.slice)
	services.OnList(func() { p.list("services") })
	endpointSlices.OnList(func() { p.list("slices") })
	return p
}

func nameOf(old, now *corev1.Service) types.NamespacedName {
	if now == nil {
		now = old
	}
	return types.NamespacedName{Namespace: now.Namespace, Name: now.Name}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (p *Proxy) dirty(name types.NamespacedName) {
	p.seen.Lock()
	p.seen.dirty[name] = true
	p.seen.Unlock()
	poke(p.wake)
}

func (p *Proxy) list(kind string) {
	p.seen.Lock()
	p.seen.lists[kind] = true
	p.seen.Unlock()
	poke(p.wake)
}

// slice notes a change of a slice. Its label says which Service it is of.
func (p *Proxy) slice(old, now *discoveryv1.EndpointSlice) {
	p.seen.Lock()
	for _, s := range []*discoveryv1.EndpointSlice{old, now} {
		if s == nil || s.Labels[discoveryv1.LabelServiceName] == "" {
			continue
		}
		of := types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		p.seen.dirty[of] = true
		list := p.seen.slices[of]
		if s == now {
			if list == nil {
				list = map[string]*discoveryv1.EndpointSlice{}
				p.seen.slices[of] = list
			}
			list[s.Name] = s
		} else if delete(list, s.Name); len(list) == 0 {
			delete(p.seen.slices, of)
		}
	}
	p.seen.Unlock()
	poke(p.wake)
}

// SetNode tells of a change of this node: its addresses, its zone or its range of pods.
func (p *Proxy) SetNode(node plan.Node, pods netip.Prefix) {
	p.seen.Lock()
	p.seen.node, p.seen.pods = &node, &pods
	p.seen.Unlock()
	poke(p.wake)
}

// Run keeps the kernel's table as the Services want it until ctx ends; ready is called when it has those that existed at the
// start. What is in the kernel stays.
func (p *Proxy) Run(ctx context.Context, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer p.doors.close()
	defer stop()
	failed := make(chan error, 2)
	for _, run := range []func(context.Context, func()) error{p.services.Run, p.slices.Run} {
		running.Go(func() {
			if err := run(ctx, func() {}); err != nil {
				failed <- err
			}
		})
	}
	running.Go(func() { p.keeper.Run(ctx) })
	running.Go(func() { p.cutFlows(ctx) })
	patience, reported := settle, ""
	for {
		select {
		case <-p.wake:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
		done, err := p.catchUp()
		if err != nil {
			if err.Error() != reported {
				p.cfg.Log.Warn("the rules of Services could not be changed, trying again", "error", err)
				reported = err.Error()
			}
			wait(ctx, patience)
			patience = min(2*patience, again)
			poke(p.wake)
			continue
		}
		patience, reported = settle, ""
		if done && ready != nil {
			ready()
			ready = nil
		}
	}
}

// catchUp brings the kernel to what the informers have told until now: one batch for all that has come since the last one.
// done is false until both kinds have been listed.
func (p *Proxy) catchUp() (done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.Lock()
	if len(p.seen.lists) < 2 { // what an earlier run has left stays until all is known
		p.seen.Unlock()
		return false, nil
	}
	anew, whole := p.newNode()
	gone := map[types.NamespacedName]bool{}
	if anew { // every Service is planned anew; what comes out the same is not written
		for name := range p.state.entries {
			p.seen.dirty[name] = true
			gone[name] = whole
		}
		for _, svc := range p.services.List() {
			p.seen.dirty[nameOf(svc, nil)] = true
		}
	}
	if whole {
		p.state = newState(p.cfg.Table, p.state.renderer)
		p.keeper.Forget()
	}
	updates := map[types.NamespacedName]*entry{}
	for name := range p.seen.dirty {
		updates[name] = p.planned(name)
	}
	clear(p.seen.dirty)
	p.seen.Unlock()
	for name, e := range updates {
		old := p.state.entries[name]
		if reflect.DeepEqual(old, e) && !gone[name] {
			delete(updates, name)
			continue
		}
		for _, f := range broken(old, e) {
			p.broken[f] = true
		}
	}
	p.doors.follow(updates)
	if err = p.keeper.Write(p.state.change(updates)); err != nil {
		return false, fmt.Errorf("proxy: %w", err)
	}
	if len(p.broken) > 0 || !p.swept {
		poke(p.cut)
	}
	return true, nil
}

// newNode takes over what SetNode has told. anew: Services may need something else now; whole: the same plan of one gives
// other rules now, so that the whole table is written. The caller holds both locks.
func (p *Proxy) newNode() (anew, whole bool) {
	if p.seen.node == nil {
		return false, false
	}
	old, r := p.state.renderer, renderer{links: p.cfg.Links, node: *p.seen.node, pods: *p.seen.pods}
	p.seen.node, p.seen.pods = nil, nil
	if reflect.DeepEqual(r, old) {
		return false, false
	}
	p.state.renderer = r
	return true, r.pods != old.pods || !slices.Equal(r.node.Addresses, old.node.Addresses)
}

// planned is a Service as it is now; nil if it needs nothing.
func (p *Proxy) planned(name types.NamespacedName) *entry {
	svc, ok := p.services.Get(name.Namespace, name.Name)
	if !ok {
		return nil
	}
	var list []*discoveryv1.EndpointSlice
	for _, s := range p.seen.slices[name] {
		list = append(list, s)
	}
	e := &entry{plan: plan.Of(svc, list, p.state.node), created: svc.CreationTimestamp.Time}
	if len(e.plan.Ports) == 0 {
		return nil
	}
	return e
}

// Teardown removes the table.
func Teardown(table string) error {
	if err := nft.NewKernel().Delete(table); err != nil {
		return errors.Join(errors.New("proxy"), err)
	}
	return nil
}

const (
	// settle and again bound the gap between two attempts that the kernel refuses.
	settle = 50 * time.Millisecond
	again  = 5 * time.Second
)

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
