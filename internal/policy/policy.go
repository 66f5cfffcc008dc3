package policy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/informer"
	"minik8s/internal/nft"
	"minik8s/internal/policy/plan"
)

// Source is what an Enforcer follows: an informer of a kind in all namespaces, which the Enforcer runs.
type Source[T api.Object] interface {
	OnChange(informer.Handler[T])
	OnList(func())
	Get(namespace, name string) (T, bool)
	Len() int
	Run(ctx context.Context, ready func()) error
}

var (
	_ Source[*networkingv1.NetworkPolicy] = (*informer.Informer[*networkingv1.NetworkPolicy])(nil)
	_ Source[*minik8s.PodAddress]         = (*informer.Informer[*minik8s.PodAddress])(nil)
	_ Source[*corev1.Namespace]           = (*informer.Informer[*corev1.Namespace])(nil)
)

// Peers are the sources of those whom policies name. They are followed while there is a policy.
type Peers struct {
	Pods       Source[*minik8s.PodAddress]
	Namespaces Source[*corev1.Namespace]
}

// Config is what an Enforcer is made from.
type Config struct {
	// Table is the name of this daemon's table for Services.
	Table string
	// Links is the prefix of the names of pods' links on this host.
	Links    string
	NodeName string
	// Ruleset should be the one by which the table's owner writes, so that neither takes the other's changes for somebody
	// else's. Nil: the kernel.
	Ruleset nft.Kept
	// Follow makes the sources of peers, anew each time.
	Follow func() Peers
	// Warn tells people about a policy that this node cannot carry out as it is; nil: only the log does.
	Warn func(of *networkingv1.NetworkPolicy, message string)
	Log  *slog.Logger
}

// Enforcer carries NetworkPolicies out on this node.
type Enforcer struct {
	cfg      Config
	policies Source[*networkingv1.NetworkPolicy]
	wake     chan struct{}

	seen struct { // what was told
		sync.Mutex
		policies, pods map[types.NamespacedName]bool // that have changed
		namespaces     map[string]bool
		lists          map[string]bool
		peers          *Peers // nil while they are not followed
		admitted       map[types.NamespacedName]*admission
		asked, done    int           // how often Admit has waited, and for which of these the kernel is ready
		answer         chan struct{} // closed when done changes
		late           bool          // Admit has waited in vain, and does not until the kernel is ready again
	}
	following followed // of Run's goroutine alone

	mu     sync.Mutex // state, and what follows it
	state  *state
	keeper *nft.Keeper
	idle   bool // there is no policy, and the state is empty
	// ignored is what is ignored of policies, until it is told.
	ignored map[types.NamespacedName]string
}

// New makes an Enforcer that knows the NetworkPolicies of all namespaces from their informer.
func New(cfg Config, policies Source[*networkingv1.NetworkPolicy]) *Enforcer {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Warn == nil {
		cfg.Warn = func(*networkingv1.NetworkPolicy, string) {}
	}
	e := &Enforcer{cfg: cfg, policies: policies, wake: make(chan struct{}, 1), state: newState(cfg.Links), ignored: map[types.NamespacedName]string{}}
	e.keeper = nft.NewKeeper(nft.KeeperConfig{Ruleset: cfg.Ruleset, Table: cfg.Table, Wanted: func() nft.Table { return e.state.table(cfg.Table) }, Lock: &e.mu,
		What: "the rules of NetworkPolicies", Log: cfg.Log})
	e.seen.policies, e.seen.admitted = map[types.NamespacedName]bool{}, map[types.NamespacedName]*admission{}
	e.seen.lists, e.seen.answer = map[string]bool{}, make(chan struct{})
	e.forgetPeers()
	policies.OnChange(func(old, now *networkingv1.NetworkPolicy) {
		e.note(func() { e.seen.policies[nameOf(old, now)] = true })
	})
	policies.OnList(func() { e.note(func() { e.seen.lists[listPolicies] = true }) })
	return e
}

// The lists that have to be there.
const (
	listPolicies   = "policies"
	listPods       = "pods"
	listNamespaces = "namespaces"
)

func nameOf[T interface {
	comparable
	api.Object
}](old, now T) types.NamespacedName {
	var none T
	if now == none {
		now = old
	}
	return types.NamespacedName{Namespace: now.GetNamespace(), Name: now.GetName()}
}

// note changes what was seen and wakes Run.
func (e *Enforcer) note(f func()) {
	e.seen.Lock()
	f()
	e.seen.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *Enforcer) forgetPeers() {
	e.seen.pods, e.seen.namespaces, e.seen.peers = map[types.NamespacedName]bool{}, map[string]bool{}, nil
	delete(e.seen.lists, listPods)
	delete(e.seen.lists, listNamespaces)
}

// Run carries the policies out until ctx ends; ready is called when those that existed at the start are in the kernel. What is
// in the kernel stays. An error is one of a source.
func (e *Enforcer) Run(ctx context.Context, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	failed := make(chan error, 3)
	var running sync.WaitGroup
	defer running.Wait()
	defer func() { // nothing is known any more: pods wait until the next Run
		e.unfollow()
		e.note(func() { delete(e.seen.lists, listPolicies) })
	}()
	defer stop()
	running.Go(func() {
		if err := e.policies.Run(ctx, func() {}); err != nil {
			failed <- err
		}
	})
	pause, reported := shortest, ""
	for {
		select {
		case <-e.wake:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
		done, err := e.turn(ctx, failed)
		if err != nil {
			if err.Error() != reported {
				e.cfg.Log.Warn("the rules of NetworkPolicies could not be changed, trying again", "error", err)
				reported = err.Error()
			}
			wait(ctx, pause)
			pause = min(2*pause, longestPause)
			e.note(func() {})
			continue
		}
		pause, reported = shortest, ""
		if done && ready != nil {
			ready()
			ready = nil
		}
	}
}

// shortest and longestPause bound the gap between two attempts that the kernel refuses.
const (
	shortest     = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// turn follows peers if there is a policy, and brings the kernel to what was told until now. done is false until all that
// is needed has been listed: what an earlier run has left stays until then.
func (e *Enforcer) turn(ctx context.Context, failed chan<- error) (done bool, err error) {
	e.seen.Lock()
	listed := e.seen.lists[listPolicies]
	e.seen.Unlock()
	if !listed {
		return false, nil
	}
	if needed := e.policies.Len() > 0; needed && e.following.stop == nil {
		e.follow(ctx, failed)
	} else if !needed && e.following.stop != nil {
		e.unfollow()
	}
	return e.catchUp()
}

// catchUp makes one batch of all that was told since the last one.
func (e *Enforcer) catchUp() (done bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.Lock()
	following := e.seen.peers != nil
	if following && !(e.seen.lists[listPods] && e.seen.lists[listNamespaces]) {
		e.seen.Unlock()
		return false, nil
	}
	asked := e.seen.asked
	var c changes
	if following {
		c = e.gather()
	} else if !e.idle { // nothing of ours is wanted: also what an earlier run has left goes
		e.state = newState(e.cfg.Links)
		clear(e.ignored)
		e.keeper.Forget()
	}
	if !following {
		maps.DeleteFunc(e.seen.policies, func(n types.NamespacedName, _ bool) bool { _, ok := e.policies.Get(n.Namespace, n.Name); return !ok })
	}
	if following && e.idle { // nobody has looked at the table meanwhile
		e.keeper.Forget()
	}
	e.idle = !following
	e.seen.Unlock()
	if err := e.keeper.Write(e.state.change(c)); err != nil {
		return false, fmt.Errorf("policy: %w", err)
	}
	e.warn()
	e.seen.Lock()
	if e.seen.done != asked || e.seen.late {
		e.seen.done, e.seen.late = asked, false
		close(e.seen.answer)
		e.seen.answer = make(chan struct{})
	}
	e.seen.Unlock()
	return true, nil
}

// gather is what has changed, as it is now. Both locks are held.
func (e *Enforcer) gather() changes {
	c := changes{policies: map[types.NamespacedName]*plan.Policy{}, pods: map[types.NamespacedName]*plan.Pod{}, namespaces: map[string]labels.Set{}}
	for name := range e.seen.policies {
		c.policies[name] = nil
		delete(e.ignored, name)
		if np, ok := e.policies.Get(name.Namespace, name.Name); ok {
			p, err := plan.Of(np)
			if err != nil { // the API takes none such
				e.cfg.Log.Warn("a NetworkPolicy cannot be carried out", "policy", name, "error", err)
				continue
			}
			c.policies[name] = &p
			if len(p.Ignored) > 0 {
				e.ignored[name] = "this cluster has no addresses of IPv6, so these let nobody in: " + strings.Join(p.Ignored, ", ")
			}
		}
	}
	for name := range e.seen.pods {
		c.pods[name] = e.podOf(name)
	}
	for name := range e.seen.namespaces {
		c.namespaces[name] = nil
		if ns, ok := e.seen.peers.Namespaces.Get("", name); ok {
			c.namespaces[name] = labels.Merge(ns.Labels, nil) // never nil: that is a namespace that is not known
		}
	}
	clear(e.seen.policies)
	clear(e.seen.pods)
	clear(e.seen.namespaces)
	return c
}

// podOf is a pod as it is now; nil if there is none. Of one of this node's its kubelet knows the addresses first.
func (e *Enforcer) podOf(name types.NamespacedName) *plan.Pod {
	var own *plan.Pod
	if a := e.seen.admitted[name]; a != nil {
		own = a.Pod
	}
	obj, ok := e.seen.peers.Pods.Get(name.Namespace, name.Name)
	switch {
	case !ok, own != nil && obj.UID != own.UID:
		return own
	case own == nil:
		return plan.PodOf(obj, e.cfg.NodeName)
	}
	p := plan.PodOf(obj, e.cfg.NodeName)
	p.Addresses, p.Certain = own.Addresses, true
	return p
}

// warn tells of what this node cannot carry out, as soon as it concerns a pod here.
func (e *Enforcer) warn() {
	for name, message := range e.ignored {
		if np, ok := e.policies.Get(name.Namespace, name.Name); ok && e.state.isolates(name) {
			delete(e.ignored, name)
			e.cfg.Log.Warn("a part of a NetworkPolicy is ignored", "policy", name, "why", message)
			e.cfg.Warn(np, message)
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
