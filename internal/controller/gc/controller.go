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
	client    client.Interface
	graph     *graph
	informers []*informer.Informer[api.Object]
	loop      *loop.Loop // its keys are UIDs
}

// New makes the controller.
func New(c client.Interface, log *slog.Logger) *Controller {
	g := &Controller{client: c, graph: newGraph()}
	g.loop = loop.New("gc", log, g.reconcile)
	for _, kind := range kinds() {
		inf := informer.New[api.Object](c, kind, informer.Options{Log: log})
		inf.OnChange(func(old, now api.Object) { g.changed(kind, old, now) })
		g.informers = append(g.informers, inf)
	}
	return g
}

// kinds are those that own or are owned. Nobody owns Events, and they go by themselves.
func kinds() []*api.Kind {
	return slices.DeleteFunc(slices.Clone(api.Kinds), func(k *api.Kind) bool { return k == api.Events })
}

// Run works until ctx ends. Nothing is collected before every kind has been listed.
func (g *Controller) Run(ctx context.Context, ready func()) error {
	sources := make([]supervise.Source, len(g.informers))
	for i, inf := range g.informers {
		sources[i] = inf
	}
	return loop.Drive(ctx, ready, sources, g.loop.Workers(workers))
}

func (g *Controller) add(uid types.UID) { g.loop.Add(loop.Key{Name: string(uid)}) }

// changed keeps the graph and asks for a look at whatever the change may concern.
func (g *Controller) changed(kind *api.Kind, old, now api.Object) {
	if now == nil {
		uid := old.GetUID()
		// It leaves the graph first: a dependent that is only now put there then misses its owner.
		g.graph.remove(uid)
		for _, d := range g.graph.below(uid) {
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
	for _, o := range old.GetOwnerReferences() { // one that waits for this object may not need to any more
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
	fresh, err := g.client.Get(ctx, known.key) // decide on what is, not on what was
	if apierrors.IsNotFound(err) || err == nil && fresh.GetUID() != known.uid {
		return nil
	}
	if err != nil {
		return err
	}
	obj := itemOf(known.key.Kind, fresh)
	owners := make([]standing, len(obj.owners))
	var unseen error
	for i := range obj.owners {
		owners[i], err = g.look(ctx, obj, &obj.owners[i])
		if errors.Is(err, errUnseen) {
			unseen, err = err, nil
		}
		if err != nil {
			return err
		}
	}
	below := g.graph.below(obj.uid)
	a := decide(obj, owners, below)
	if a.dropFinalizer != "" { // after that, nobody looks for dependents any more
		if err := g.seenAll(ctx, obj, below); err != nil {
			return err
		}
	}
	if err := g.carryOut(ctx, obj, fresh, a); err != nil {
		return err
	}
	return unseen
}

// seenAll asks the API for dependents of an owner that the watches have not shown yet; with one, the owner
// has to come again. Kinds are watched apart, so that the deletion of an owner may be seen before the
// creation of what it owns. Only deletions that wait for the collector pay for it.
func (g *Controller) seenAll(ctx context.Context, owner *item, below []*item) error {
	seen := make(map[types.UID]bool, len(below))
	for _, d := range below {
		seen[d.uid] = true
	}
	for _, kind := range kinds() {
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

// atRest says, without asking anybody, that nothing has to be done: the usual case.
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

// errUnseen has an object come again, because it depends on another that the watches do not show yet. What
// comes and goes while a watch is broken is never shown, and so nobody would be told of its end.
var errUnseen = errors.New("it is there, and not yet seen")

// look finds out how an owner stands; one that the graph does not have is asked for, and if it is there,
// that is errUnseen beside the answer.
func (g *Controller) look(ctx context.Context, obj *item, ref *metav1.OwnerReference) (standing, error) {
	kind := api.ByGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if kind == nil || kind.Namespaced && obj.key.Namespace == "" {
		return there, nil // nothing is known about it, and what is not known is not deleted
	}
	at := client.Key{Kind: kind, Name: ref.Name}
	if kind.Namespaced {
		at.Namespace = obj.key.Namespace
	}
	var unseen error
	o := g.graph.get(ref.UID)
	// That it waits for its dependents, which costs them their life, is asked for too: another deletion may
	// have overruled the one that the watch has shown.
	if o == nil || o.key != at || o.waiting() {
		fresh, err := g.client.Get(ctx, at)
		switch {
		case apierrors.IsNotFound(err):
			return absent, nil
		case err != nil:
			return there, err
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
	return there, unseen
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
		rev := live.GetResourceVersion() // with another one it may have another owner
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
