package gateway

import (
	"context"
	"slices"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/gateway/frontends"
	"minik8s/internal/gateway/routes"
	"minik8s/internal/informer"
)

// FrontEnd is what makes routes: one or more kinds that it follows.
type FrontEnd interface {
	// OnChange adds a function that is called after each change. It is called before Run.
	OnChange(func())
	// Run follows the kinds until ctx ends; ready is called when Routes has those that existed at the start.
	Run(ctx context.Context, ready func()) error
	// Routes are what is wanted now.
	Routes() []routes.Set
}

// Follow is a front end of one kind, of which each object stands for itself.
func Follow[T api.Object](objects Source[T], set func(T) routes.Set) FrontEnd {
	return &follower{
		runs:     []func(context.Context, func()) error{objects.Run},
		onChange: func(f func()) { objects.OnChange(func(_, _ T) { f() }) },
		routes: func() (out []routes.Set) {
			for _, obj := range objects.List() {
				out = append(out, set(obj))
			}
			return out
		},
	}
}

// Names is the front end of DNS objects.
func Names(objects Source[*minik8s.DNS]) FrontEnd { return Follow(objects, frontends.FromDNS) }

// Ingresses is the front end of Ingresses.
func Ingresses(ingresses Source[*networkingv1.Ingress], classes Source[*networkingv1.IngressClass]) FrontEnd {
	f := Follow(ingresses, func(ing *networkingv1.Ingress) routes.Set { return frontends.FromIngress(ing, classes.List()...) }).(*follower)
	f.runs = append(f.runs, classes.Run)
	of := f.onChange
	f.onChange = func(changed func()) {
		of(changed)
		classes.OnChange(func(_, _ *networkingv1.IngressClass) { changed() })
	}
	return f
}

var (
	_ Source[*networkingv1.Ingress] = (*informer.Informer[*networkingv1.Ingress])(nil)
	_ Source[*minik8s.DNS]          = (*informer.Informer[*minik8s.DNS])(nil)
)

type follower struct {
	runs     []func(context.Context, func()) error
	onChange func(func())
	routes   func() []routes.Set
}

func (f *follower) OnChange(changed func()) { f.onChange(changed) }
func (f *follower) Routes() []routes.Set    { return f.routes() }

func (f *follower) Run(ctx context.Context, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running, listed sync.WaitGroup
	listed.Add(len(f.runs))
	errs := make([]error, len(f.runs))
	for i, run := range f.runs {
		var once sync.Once
		running.Go(func() {
			defer once.Do(listed.Done) // also if it ends before
			errs[i] = run(ctx, func() { once.Do(listed.Done) })
			stop()
		})
	}
	listed.Wait()
	if ctx.Err() == nil {
		ready()
	}
	running.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}
