package gc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

const workers = 20

// Controller is the garbage collector.
type Controller struct {
	client client.Interface
	views  *informer.Views
	table  *api.Table
	graph  *graph
	loop   *loop.Loop // its keys are UIDs
	log    *slog.Logger
}

// New makes the controller for the kinds of a table, and for those that are added later.
func New(c client.Interface, views *informer.Views, table *api.Table, log *slog.Logger) *Controller {
	g := &Controller{client: c, views: views, table: table, graph: newGraph(), log: log}
	g.loop = loop.New("gc", log, g.reconcile)
	return g
}

// kinds are the kinds whose objects own or are owned. Events have no owners, and package expire removes them. Objects that
// others imply go with those.
func (g *Controller) kinds() []*api.Kind {
	return slices.DeleteFunc(slices.Clone(g.table.Stored()), func(k *api.Kind) bool { return k == api.Events || k.Implied != nil })
}

// Run works until ctx ends. Nothing is collected before every kind has been listed.
func (g *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{everyKind{g}}, g.loop.Workers(workers))
}

// everyKind follows the objects of all kinds. It is ready when it has listed every kind that there was at the start.
type everyKind struct{ g *Controller }

// Run implements supervise.Source.
func (e everyKind) Run(ctx context.Context, ready func()) error {
	t := supervise.NewTasks(ctx)
	t.Go(func(ctx context.Context) error {
		followed := map[*api.Kind]bool{}
		for first := true; ; first = false {
			changed := e.g.table.Changed()
			var fresh []supervise.Source
			for _, kind := range e.g.kinds() {
				if !followed[kind] {
					followed[kind] = true
					fresh = append(fresh, e.g.informer(kind))
				}
			}
			listed := make(chan struct{})
			t.InOrder(func() { close(listed) }, fresh...)
			select {
			case <-listed:
			case <-ctx.Done():
				return nil
			}
			if first {
				ready()
			} else {
				e.g.addDependents()
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
		}
	})
	return t.Wait()
}

func (g *Controller) informer(kind *api.Kind) *informer.Informer[api.Object] {
	inf := informer.New[api.Object](g.client, kind, informer.Options{Views: g.views, Log: g.log})
	inf.OnChange(func(old, now api.Object) { g.changed(kind, old, now) })
	return inf
}

// addDependents queues every object that has an owner: an owner of a kind that was not served before was assumed to
// exist.
func (g *Controller) addDependents() {
	for _, uid := range g.graph.owned() {
		g.add(uid)
	}
}

func (g *Controller) add(uid types.UID) { g.loop.Add(loop.Key{Name: string(uid)}) }

// changed updates the graph and queues the objects that the change may concern.
func (g *Controller) changed(kind *api.Kind, old, now api.Object) {
	if now == nil {
		uid := old.GetUID()
		// It is removed from the graph first, so that a dependent that is added at this moment finds its owner
		// missing.
		g.graph.remove(uid)
		for _, d := range g.graph.dependentsOf(uid) {
			g.add(d.uid)
		}
		for _, o := range old.GetOwnerReferences() {
			if i := g.graph.get(o.UID); i != nil && i.waiting() {
				g.add(o.UID)
			}
		}
		return
	}
	i := itemOf(kind, now)
	g.graph.put(i)
	if len(i.owners) > 0 || i.deleting && (i.foreground || i.orphan) {
		g.add(i.uid)
	}
	if old == nil {
		return
	}
	for _, o := range old.GetOwnerReferences() { // an owner that waited for this object may not have to any more
		if w := g.graph.get(o.UID); w != nil && w.waiting() {
			g.add(o.UID)
		}
	}
}

func (g *Controller) reconcile(ctx context.Context, key loop.Key) error {
	known := g.graph.get(types.UID(key.Name))
	if known == nil || g.atRest(known) {
		return nil
	}
	fresh, err := g.client.Get(ctx, known.key) // decide on the present state, not on the watch's
	if apierrors.IsNotFound(err) || err == nil && fresh.GetUID() != known.uid {
		return nil
	}
	if err != nil {
		return err
	}
	obj := itemOf(known.key.Kind, fresh)
	owners := make([]ownerState, len(obj.owners))
	var unseen error
	for i := range obj.owners {
		owners[i], err = g.ownerStateOf(ctx, obj, &obj.owners[i])
		if errors.Is(err, errUnseen) {
			unseen, err = err, nil
		}
		if err != nil {
			return err
		}
	}
	dependents := g.graph.dependentsOf(obj.uid)
	a := decide(obj, owners, dependents)
	if a.dropFinalizer != "" { // after that, dependents would not be looked for again
		if err := g.seenAll(ctx, obj, dependents); err != nil {
			return err
		}
	}
	if err := g.carryOut(ctx, obj, fresh, a); err != nil {
		return err
	}
	return unseen
}

// seenAll asks the API for dependents of an owner that the watches have not shown yet. If there is one, the error is
// errUnseen and the owner is reconciled again. Each kind has a watch of its own, so the deletion of an owner may be
// seen before the creation of a dependent. Only deletions that wait for the collector pay for these lists.
func (g *Controller) seenAll(ctx context.Context, owner *item, dependents []*item) error {
	seen := make(map[types.UID]bool, len(dependents))
	for _, d := range dependents {
		seen[d.uid] = true
	}
	for _, kind := range g.kinds() {
		if owner.key.Kind.Namespaced && !kind.Namespaced {
			continue
		}
		list, err := g.client.List(ctx, kind, client.ListOptions{Namespace: owner.key.Namespace})
		if err != nil {
			return err
		}
		for _, obj := range list.Items {
			if !seen[obj.GetUID()] && slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.uid }) {
				return fmt.Errorf("a dependent, %s %s/%s: %w", kind, obj.GetNamespace(), obj.GetName(), errUnseen)
			}
		}
	}
	return nil
}

// atRest reports, from the graph alone, whether nothing has to be done, which is the usual case.
func (g *Controller) atRest(i *item) bool {
	if i.deleting {
		return !i.foreground && !i.orphan
	}
	for _, ref := range i.owners {
		o := g.graph.get(ref.UID)
		if o == nil || o.waiting() || o.key.Kind.Namespaced && o.key.Namespace != i.key.Namespace {
			return false
		}
	}
	return true
}

// errUnseen makes the loop retry an object because another one that it depends on is not shown by the watches yet. An
// object that is created and deleted while a watch is broken is never shown, so no event would report its end.
var errUnseen = errors.New("it exists, but the watch has not shown it yet")

// ownerStateOf finds out the state of an owner. One that is not in the graph is read from the API; if it exists, the
// state is returned together with errUnseen.
func (g *Controller) ownerStateOf(ctx context.Context, obj *item, ref *metav1.OwnerReference) (ownerState, error) {
	kind := g.table.ByGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if kind == nil || kind.Namespaced && obj.key.Namespace == "" {
		return exists, nil // nothing is known about the owner, so its dependent is not deleted
	}
	at := client.Key{Kind: kind, Name: ref.Name}
	if kind.Namespaced {
		at.Namespace = obj.key.Namespace
	}
	var unseen error
	o := g.graph.get(ref.UID)
	// Whether it waits for its dependents, which deletes them, is read from the API, too: another deletion may have
	// replaced the one that the watch has shown.
	if o == nil || o.key != at || o.waiting() {
		fresh, err := g.client.Get(ctx, at)
		switch {
		case apierrors.IsNotFound(err):
			return absent, nil
		case err != nil:
			return exists, err
		case fresh.GetUID() != ref.UID:
			return absent, nil
		}
		known := o != nil && o.key == at
		o = itemOf(kind, fresh)
		if kind != api.Events && !known { // events are not watched
			unseen = fmt.Errorf("the owner %s: %w", at, errUnseen)
		}
	}
	if o.waiting() {
		return waiting, unseen
	}
	return exists, unseen
}

func (g *Controller) carryOut(ctx context.Context, obj *item, live api.Object, a action) error {
	for _, d := range a.release {
		dep, err := g.client.Get(ctx, d.key)
		if err == nil && dep.GetUID() == d.uid {
			err = owner.DropRefs(ctx, g.client, dep, obj.uid)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, uid := range a.wake {
		g.add(uid)
	}
	var err error
	switch {
	case a.dropFinalizer != "":
		err = g.patch(ctx, obj, map[string]any{"uid": obj.uid, "$deleteFromPrimitiveList/finalizers": []string{a.dropFinalizer}})
	case len(a.dropRefs) > 0:
		err = owner.DropRefs(ctx, g.client, live, a.dropRefs...)
	case a.remove != "":
		rev := live.GetResourceVersion() // with another resourceVersion it may have another owner
		_, err = g.client.Delete(ctx, obj.key, &metav1.DeleteOptions{PropagationPolicy: &a.remove,
			Preconditions: &metav1.Preconditions{UID: &obj.uid, ResourceVersion: &rev}})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (g *Controller) patch(ctx context.Context, obj *item, meta map[string]any) error {
	data, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return err
	}
	_, err = g.client.Patch(ctx, obj.key, client.Patch{Type: types.StrategicMergePatchType, Data: data}, client.WriteOptions{})
	return err
}
