package gc

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	ct "minik8s/internal/controller/controllertest"
)

// TestGraphs makes random graphs of owners and dependents, deletes some of them in random ways while the collector's
// calls fail now and then, and checks the whole history of changes afterwards:
//
//   - nothing is collected while an owner of it lives, and nothing that names no owner;
//   - in the end, whatever names owners has one that lives, and names no other;
//   - when an owner that was deleted as orphaning has gone, nothing refers to it;
//   - when an owner that was deleted in the foreground has gone, nothing that blocked it is there.
func TestGraphs(t *testing.T) {
	for seed := range int64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rates := faulty.Rates{Drop: 0.05, Lose: 0.05, Conflict: 0.1, Repeat: 0.1}
			if seed%4 == 0 {
				rates.Break = 0.02
			}
			g := &garden{c: ct.New(t), t: t, rng: rand.New(rand.NewSource(seed)), chosen: map[types.UID]bool{}}
			g.watch()
			shaky := faulty.New(g.c.As("gc-controller"), rates, seed)
			if seed%2 == 0 { // the collector sees the graph grow, or finds it complete
				g.c.Start(New(shaky, nil, g.c.Kinds(), quiet).Run)
				g.grow()
			} else {
				g.grow()
				g.c.Start(New(shaky, nil, g.c.Kinds(), quiet).Run)
			}
			g.cut()
			shaky.Heal()
			g.settle()
			judge(t, g.history(), g.chosen)
		})
	}
}

var quiet = slog.New(slog.DiscardHandler)

// grown are the kinds that the graphs are made of; Nodes are owners without a namespace.
var grown = []*api.Kind{api.ConfigMaps, api.Secrets, api.Leases, api.Nodes}

const marker = "zz-end"

// garden is a random graph and its history.
type garden struct {
	c      *ct.Cluster
	t      *testing.T
	rng    *rand.Rand
	all    []api.Object
	chosen map[types.UID]bool // what the test itself has deleted

	mu     sync.Mutex
	events []client.Event
	wg     sync.WaitGroup
	moved  chan struct{}
}

// watch notes every change of the kinds until each has shown its marker.
func (g *garden) watch() {
	g.moved = make(chan struct{}, 1)
	for _, kind := range grown {
		w, err := g.c.Admin().Watch(g.c.Context(), kind, client.WatchOptions{})
		if err != nil {
			g.t.Fatal(err)
		}
		g.wg.Go(func() {
			defer w.Stop()
			for e := range w.Events() {
				if e.Object.GetName() == marker {
					return
				}
				g.mu.Lock()
				g.events = append(g.events, e)
				g.mu.Unlock()
				select {
				case g.moved <- struct{}{}:
				default:
				}
			}
		})
	}
}

// plant creates an object that names these owners.
func (g *garden) plant(kind *api.Kind, ns, name string, owners []metav1.OwnerReference) {
	obj := kind.New()
	obj.SetName(name)
	if kind.Namespaced {
		obj.SetNamespace(ns)
	}
	obj.SetOwnerReferences(owners)
	made, err := g.c.Admin().Create(g.c.Context(), obj, client.WriteOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	g.all = append(g.all, made)
}

// refTo names an object as an owner, now and then one that is not there.
func (g *garden) refTo(o api.Object) metav1.OwnerReference {
	kind := api.KindOf(o)
	ref := metav1.OwnerReference{APIVersion: kind.APIVersion(), Kind: kind.Kind, Name: o.GetName(), UID: o.GetUID()}
	switch g.rng.Intn(8) {
	case 0, 1, 2:
		ref.BlockOwnerDeletion = new(true)
	case 3:
		ref.BlockOwnerDeletion = new(false)
	}
	if g.rng.Intn(20) == 0 {
		ref.UID = types.UID("before-" + string(o.GetUID())) // an earlier object of that name
	}
	return ref
}

// refs are up to three owners for an object in a namespace; hardly ever in another.
func (g *garden) refs(from []api.Object, ns string) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for range g.rng.Intn(4) {
		if len(from) == 0 {
			break
		}
		o := from[g.rng.Intn(len(from))]
		if o.GetNamespace() != "" && o.GetNamespace() != ns && g.rng.Intn(10) > 0 {
			continue
		}
		ref := g.refTo(o)
		if !slices.ContainsFunc(out, func(r metav1.OwnerReference) bool { return r.UID == ref.UID }) {
			out = append(out, ref)
		}
	}
	return out
}

// grow makes the graph: owners before their dependents, and then some edges the other way, for cycles.
func (g *garden) grow() {
	g.plant(api.ConfigMaps, "default", "nobody", []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "was"}})
	ct.Create(g.c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	for i := range 30 {
		kind, ns := grown[g.rng.Intn(len(grown))], []string{"default", "other"}[g.rng.Intn(2)]
		var owners []metav1.OwnerReference
		if kind.Namespaced {
			owners = g.refs(g.all[1:], ns)
		}
		g.plant(kind, ns, fmt.Sprintf("x-%02d", i), owners)
	}
	for range 4 {
		g.bend(g.all[1+g.rng.Intn(10)], g.all[len(g.all)-1-g.rng.Intn(10)])
	}
}

// bend makes a young object an owner of an old one; cycles come of it.
func (g *garden) bend(old, young api.Object) {
	if old.GetNamespace() == "" || old.GetNamespace() != young.GetNamespace() {
		return
	}
	for {
		now, err := g.c.Admin().Get(g.c.Context(), client.KeyOf(old))
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil {
			g.t.Fatal(err)
		}
		upd := now.DeepCopyObject().(api.Object)
		ref := g.refTo(young)
		if slices.ContainsFunc(upd.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == ref.UID }) {
			return
		}
		upd.SetOwnerReferences(append(upd.GetOwnerReferences(), ref))
		if _, err = g.c.Admin().Update(g.c.Context(), upd, client.WriteOptions{}); err == nil || apierrors.IsNotFound(err) {
			return
		}
		if !apierrors.IsConflict(err) {
			g.t.Fatal(err)
		}
	}
}

// cut deletes some objects, each in its way, and makes some of them again.
func (g *garden) cut() {
	ways := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
	for range 8 {
		o := g.all[g.rng.Intn(len(g.all))]
		uid, way := o.GetUID(), ways[g.rng.Intn(len(ways))]
		// Only what is not being deleted yet: a second deletion may overrule the first, which judge does not follow.
		live, err := g.c.Admin().Get(g.c.Context(), client.KeyOf(o))
		if err != nil || live.GetUID() != uid || live.GetDeletionTimestamp() != nil {
			continue
		}
		g.chosen[uid] = true
		rev := live.GetResourceVersion()
		_, err = g.c.Admin().Delete(g.c.Context(), client.KeyOf(o), &metav1.DeleteOptions{
			PropagationPolicy: &way, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &rev}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			g.t.Fatal(err)
		}
		if g.rng.Intn(3) == 0 { // the name again, if it is free, with another UID
			next := api.KindOf(o).New()
			next.SetNamespace(o.GetNamespace())
			next.SetName(o.GetName())
			if _, err := g.c.Admin().Create(g.c.Context(), next, client.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				g.t.Fatal(err)
			}
		}
	}
}

// settle waits until nothing is left to do.
func (g *garden) settle() {
	ctx, cancel := context.WithTimeout(g.c.Context(), patience)
	defer cancel()
	for {
		what := unfinished(g.now())
		if what == "" {
			return
		}
		select {
		case <-g.moved:
		case <-ctx.Done():
			g.t.Fatal(what)
		}
	}
}

// now is every object there is.
func (g *garden) now() world {
	w := world{}
	for _, kind := range grown {
		list, err := g.c.Admin().List(g.c.Context(), kind, client.ListOptions{})
		if err != nil {
			g.t.Fatal(err)
		}
		for _, obj := range list.Items {
			w[client.KeyOf(obj)] = obj
		}
	}
	return w
}

// history is every change since the beginning, in order.
func (g *garden) history() []client.Event {
	for _, kind := range grown {
		g.plant(kind, "default", marker, nil)
	}
	g.wg.Wait()
	slices.SortFunc(g.events, func(a, b client.Event) int { return cmp.Compare(revision(a), revision(b)) })
	return g.events
}

func revision(e client.Event) int64 {
	n, err := strconv.ParseInt(e.ResourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
