package function

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/events"
	"minik8s/internal/function/plan"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// ControllerName is the part's name.
const ControllerName = "function-controller"

// again is after how long is tried again what others have to put right.
const again = 10 * time.Second

// soon is after how long is tried again what waits for its turn.
const soon = 200 * time.Millisecond

// longestSweepPause is after how long at most is tried again to remove images.
const longestSweepPause = 10 * time.Minute

// Controller runs Functions, and the calls for which nobody waits.
type Controller struct {
	client    client.Interface
	record    *events.Recorder
	images    *Images
	server    *Server
	log       *slog.Logger
	functions *informer.Informer[*minik8s.Function]
	calls     *informer.Informer[*minik8s.FunctionCall]
	sets      *informer.Informer[*appsv1.ReplicaSet]
	pods      *informer.Informer[*corev1.Pod]
	services  *informer.Informer[*corev1.Service]
	slices    *informer.Informer[*discoveryv1.EndpointSlice]
	port      int32 // to which Services of functions lead; 0: there are none
	loop      *loop.Loop
	calling   *loop.Loop
	triggers  *triggers
	dispatch  *dispatcher
	tasks     *supervise.Tasks // of this Run

	store *stored // FunctionCalls

	mu      sync.Mutex
	refs    map[types.UID]made  // the newest image of each function
	doubts  map[types.UID]bool  // those of which a node could not pull it
	present map[loop.Key]string // the name of each function's present ReplicaSet
	sweeps  chan struct{}
}

// made is an image, and the generation that it is of.
type made struct {
	generation int64
	ref        string
	platform   string // that it stands on; empty: it is none of ours
}

// NewController makes the controller. server has its calls brought here while it runs; kinds has those that triggers name; port is that of the masters' Doors.
func NewController(c client.Interface, views *informer.Views, record *events.Recorder, images *Images, server *Server, kinds *api.Table, port int32, log *slog.Logger) *Controller {
	opts := informer.Options{Views: views, Log: log}
	f := &Controller{client: c, record: record, images: images, server: server, log: log,
		functions: informer.New[*minik8s.Function](c, api.Functions, opts),
		calls:     informer.New[*minik8s.FunctionCall](c, api.FunctionCalls, opts),
		sets:      informer.New[*appsv1.ReplicaSet](c, api.ReplicaSets, opts),
		pods:      informer.New[*corev1.Pod](c, api.Pods, opts),
		services:  informer.New[*corev1.Service](c, api.Services, opts),
		slices:    informer.New[*discoveryv1.EndpointSlice](c, api.EndpointSlices, opts),
		port:      port,
		refs:      map[types.UID]made{}, doubts: map[types.UID]bool{}, present: map[loop.Key]string{}, store: newStored(), sweeps: make(chan struct{}, 1),
	}
	f.dispatch = newDispatcher(c, log, f.presentSet, func(key loop.Key) bool {
		_, ok := f.functions.Get(key.Namespace, key.Name)
		return ok
	}, func(key loop.Key) { f.loop.Add(key) })
	f.dispatch.make, f.dispatch.accept = f.makeSet, f.accept
	f.dispatch.stored = func(ctx context.Context, q question) bool {
		fn, err := f.client.Get(ctx, client.Key{Kind: api.Functions, Namespace: q.function.Namespace, Name: q.function.Name})
		if err != nil {
			return !apierrors.IsNotFound(err) // a store that does not answer says nothing of the function
		}
		return q.uid == "" || fn.GetUID() == q.uid
	}
	f.loop = loop.New("function", log, f.reconcile)
	f.calling = loop.New("functioncall", log, f.advance)
	f.triggers = newTriggers(f, kinds)
	f.functions.OnChange(func(old, now *minik8s.Function) {
		f.triggers.changed(old, now)
		if old != nil && (now == nil || now.Status.Image != old.Status.Image) {
			f.left(old.Namespace, old.Name, old.Status.Image)
		}
		if now == nil {
			f.forget(old)
			f.sweep()
			return
		}
		f.loop.Add(keyOf(now))
	})
	f.sets.OnChange(func(old, now *appsv1.ReplicaSet) {
		set := now
		if now == nil {
			set = old
		}
		if name, ok := set.Annotations[plan.NameAnnotation]; ok {
			f.loop.Add(loop.Key{Namespace: set.Namespace, Name: name})
			if now == nil {
				f.left(set.Namespace, name, imageOf(set.Spec.Template.Spec.Containers))
				f.sweep() // its image may be one that nobody has any more
			}
		}
	})
	f.pods.OnChange(func(old, now *corev1.Pod) {
		pod := now
		if now == nil {
			pod = old
		}
		if name, ok := pod.Annotations[plan.NameAnnotation]; ok && pod.Labels[minik8s.FunctionLabel] == plan.Derived(name) {
			key := loop.Key{Namespace: pod.Namespace, Name: name}
			f.dispatch.pod(key, old, now)
			if now == nil {
				f.left(pod.Namespace, name, imageOf(old.Spec.Containers))
			} else if f.images.Elsewhere() && pullFails(now) && !(old != nil && pullFails(old)) {
				f.pushAgain(now)
			}
			f.loop.Add(key)
			if set := f.presentSet(key); now == nil && set != nil && set.Labels[plan.VersionLabel] != old.Labels[plan.VersionLabel] {
				f.sweep()
			}
		}
	})
	f.followAddresses()
	f.calls.OnChange(func(old, now *minik8s.FunctionCall) {
		f.store.changed(old, now)
		if now == nil {
			f.server.cancel(callKey(old), old.UID)
			return
		}
		f.calling.Add(callKey(now))
	})
	return f
}

// forget drops all that is known of a function that is gone.
func (f *Controller) forget(fn *minik8s.Function) {
	key := keyOf(fn)
	f.dispatch.drop(key)
	f.server.last.forget(key)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.refs, fn.UID)
	delete(f.doubts, fn.UID)
	delete(f.present, key)
}

func keyOf(f *minik8s.Function) loop.Key { return loop.Key{Namespace: f.Namespace, Name: f.Name} }

// Run works until ctx ends.
func (f *Controller) Run(ctx context.Context, ready func()) error {
	defer f.dispatch.stop()
	defer f.server.leave(f.dispatch)
	f.tasks = supervise.NewTasks(ctx)
	f.triggers.tasks = f.tasks
	f.tasks.Go(func(ctx context.Context) error {
		return loop.Drive(ctx, func() {
			f.sweep() // what went while nobody led
			f.server.serve(f.dispatch)
			ready()
		}, []supervise.Source{f.functions, f.sets, f.pods, f.calls, f.services, f.slices},
			f.loop.Workers(2), f.dispatch.scale.Workers(2), f.calling.Workers(4), f.triggers.loop.Workers(1))
	})
	f.tasks.Go(f.keepSweeping)
	return f.tasks.Wait()
}

// presentSet is the ReplicaSet that has a function's instances; nil if there is none yet.
func (f *Controller) presentSet(key loop.Key) *appsv1.ReplicaSet {
	f.mu.Lock()
	name := f.present[key]
	f.mu.Unlock()
	if name == "" {
		return nil
	}
	set, ok := f.sets.Get(key.Namespace, name)
	if !ok || set.DeletionTimestamp != nil {
		return nil
	}
	return set
}

// makeSet makes a function's ReplicaSet, with so many instances, if the function's image is known.
func (f *Controller) makeSet(ctx context.Context, key loop.Key, n int32) error {
	fn, ok := f.functions.Get(key.Namespace, key.Name)
	if !ok || fn.DeletionTimestamp != nil {
		return nil
	}
	f.mu.Lock()
	m, known := f.refs[fn.UID]
	f.mu.Unlock()
	if !known || m.generation != fn.Generation {
		return nil // reconcile is about to have it made, and has the load looked at again
	}
	set := plan.Set(fn, m.ref, owner.Ref(fn))
	*set.Spec.Replicas = n
	_, err := f.client.Create(ctx, set, client.WriteOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // the informer is about to show it
	}
	return err
}

// ref is a function's image, made if it is new.
func (f *Controller) ref(ctx context.Context, fn *minik8s.Function) (string, error) {
	f.mu.Lock()
	m, ok := f.refs[fn.UID]
	doubted := f.doubts[fn.UID]
	f.mu.Unlock()
	if ok && m.generation == fn.Generation && !doubted {
		return m.ref, nil
	}
	m = made{generation: fn.Generation}
	var err error
	if fn.Spec.Image == "" {
		if m.platform, err = f.images.Platform(); err != nil {
			return "", err
		}
	}
	// What another master has made, or this one before, is the same image: it is made again when a node asks for it and it is not here.
	s := &fn.Status
	known := s.Image != "" && s.ObservedGeneration == fn.Generation && m.platform != "" && s.Platform == m.platform && f.images.Holds(s.Image)
	if m.ref = s.Image; !known || doubted {
		m.ref, err = f.images.Ref(ctx, fn)
	}
	if err != nil && known { // nodes that have it do without the registry
		if !errors.Is(err, errBusy) { // then the node's next attempt has it tried again
			f.log.Warn("an image that a node could not pull cannot be pushed again", "function", keyOf(fn).String(), "error", err)
		}
		m.ref, err = s.Image, nil
	}
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	f.refs[fn.UID] = m
	delete(f.doubts, fn.UID)
	f.mu.Unlock()
	return m.ref, nil
}

func (f *Controller) reconcile(ctx context.Context, key loop.Key) error {
	fn, ok := f.functions.Get(key.Namespace, key.Name)
	if !ok || fn.DeletionTimestamp != nil {
		return nil
	}
	at, err := f.keepAddress(ctx, fn)
	if err != nil {
		return err
	}
	ref, err := f.ref(ctx, fn)
	if errors.Is(err, errBusy) {
		f.loop.AddAfter(key, soon)
		return nil
	}
	if err != nil {
		reason := "ImageFailed"
		switch {
		case errors.Is(err, errNoBase):
			reason = "NoBaseImage"
		case errors.As(err, new(*registryError)):
			reason = "RegistryFailed"
		}
		f.loop.AddAfter(key, retryAfter(err))
		return f.say(ctx, fn, at, nil, metav1.Condition{Type: minik8s.FunctionReady, Status: metav1.ConditionFalse, Reason: reason, Message: err.Error()})
	}
	want := plan.Set(fn, ref, owner.Ref(fn))
	older, exists := f.setsOf(fn, want.Name)
	if n := f.first(fn, older); !exists && n > 0 { // a function that was never called has none: thousands may rest here
		*want.Spec.Replicas = n
		if _, err := f.client.Create(ctx, want, client.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return errors.Join(err, f.say(ctx, fn, at, nil, metav1.Condition{Type: minik8s.FunctionReady, Status: metav1.ConditionFalse, Reason: "InstancesFailed", Message: err.Error()}))
		}
	}
	f.mu.Lock()
	f.present[key] = want.Name
	f.mu.Unlock()
	p := f.dispatch.follow(fn, want.Labels[plan.VersionLabel], func(p *pool) { f.catchUp(key, p) })
	if now, ok := f.functions.Get(key.Namespace, key.Name); !ok || now.UID != fn.UID { // it went while its image was made, and was forgotten before
		f.forget(fn)
		f.sweep()
		f.loop.Add(key)
		return nil
	}
	if err := f.clear(ctx, key, p, older); err != nil {
		return err
	}
	return f.say(ctx, fn, at, p, metav1.Condition{Type: minik8s.FunctionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "it can be called"})
}

// catchUp tells a pool of pods that were seen before it was there.
func (f *Controller) catchUp(key loop.Key, p *pool) {
	for _, pod := range f.pods.List() {
		if pod.Namespace == key.Namespace && pod.Annotations[plan.NameAnnotation] == key.Name && pod.Labels[minik8s.FunctionLabel] == plan.Derived(key.Name) {
			p.pod(nil, pod, look)
		}
	}
}

// setsOf are a function's ReplicaSets but that of a name, and whether there is that one.
func (f *Controller) setsOf(fn *minik8s.Function, name string) (older []*appsv1.ReplicaSet, exists bool) {
	for _, set := range f.sets.List() {
		if ref := metav1.GetControllerOfNoCopy(set); set.Namespace != fn.Namespace || ref == nil || ref.UID != fn.UID {
			continue
		}
		if set.Name == name {
			exists = true
			continue
		}
		older = append(older, set)
	}
	return older, exists
}

// first is how many instances a new ReplicaSet begins with: as many as there are of the version before.
func (f *Controller) first(fn *minik8s.Function, older []*appsv1.ReplicaSet) int32 {
	n := max(fn.Spec.MinInstances, fn.Spec.InitialInstances)
	for _, set := range older {
		n = max(n, set.Status.Replicas)
	}
	return min(n, fn.Spec.MaxInstances)
}

// clear removes ReplicaSets of older versions once their calls have ended.
func (f *Controller) clear(ctx context.Context, key loop.Key, p *pool, older []*appsv1.ReplicaSet) error {
	if len(older) == 0 {
		return nil
	}
	if p.older() > 0 {
		f.loop.AddAfter(key, 200*time.Millisecond)
		return nil
	}
	for _, set := range older {
		background := metav1.DeletePropagationBackground
		if _, err := f.client.Delete(ctx, client.KeyOf(set), &metav1.DeleteOptions{PropagationPolicy: &background}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// say writes a function's status.
func (f *Controller) say(ctx context.Context, fn *minik8s.Function, at addressed, p *pool, c metav1.Condition) error {
	status := fn.DeepCopy().Status
	c.ObservedGeneration = fn.Generation
	c.LastTransitionTime = metav1.NewTime(clock.Now())
	apimeta.SetStatusCondition(&status.Conditions, c)
	if status.Address = at.address; at.condition == nil {
		apimeta.RemoveStatusCondition(&status.Conditions, minik8s.FunctionAddressed)
	} else {
		at.condition.ObservedGeneration, at.condition.LastTransitionTime = fn.Generation, c.LastTransitionTime
		apimeta.SetStatusCondition(&status.Conditions, *at.condition)
	}
	if held := apimeta.FindStatusCondition(status.Conditions, minik8s.FunctionTriggersHeldBack); held != nil && !slices.ContainsFunc(fn.Spec.Triggers,
		func(t minik8s.FunctionTrigger) bool { return strings.HasPrefix(held.Message, aboutTrigger(t.Name)) }) {
		apimeta.RemoveStatusCondition(&status.Conditions, minik8s.FunctionTriggersHeldBack) // of a trigger that is there no more
	}
	status.ObservedGeneration = fn.Generation
	if p == nil {
		status.Platform = "" // the image is that of an earlier generation
	} else {
		f.mu.Lock()
		status.Image, status.Platform = f.refs[fn.UID].ref, f.refs[fn.UID].platform
		f.mu.Unlock()
		all, ready, last := p.numbers()
		if all != status.Instances || ready != status.ReadyInstances {
			status.Instances, status.ReadyInstances = all, ready
			if last.After(fn.CreationTimestamp.Time) && p.called() {
				status.LastCallTime = &metav1.Time{Time: last}
			}
		}
	}
	if apiequality.Semantic.DeepEqual(status, fn.Status) {
		return nil
	}
	next := fn.DeepCopy()
	next.Status = status
	_, err := f.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// imageOf is the image of an instance.
func imageOf(containers []corev1.Container) string {
	if len(containers) == 0 {
		return ""
	}
	return containers[0].Image
}

// left has an image looked at that a function's object has named. Only the function's own images are removed: it may name others', too.
func (f *Controller) left(namespace, name, ref string) {
	if ref != "" && f.images.Left(plan.Repository(namespace, name), ref) {
		f.sweep()
	}
}

// pullFails reports whether a node could not pull a pod's image.
func pullFails(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && s.State.Waiting.Reason == "ErrImagePull"
	})
}

// pushAgain has the image of an instance pushed again, if it is its function's present one: somebody may have removed it there.
func (f *Controller) pushAgain(pod *corev1.Pod) {
	fn, ok := f.functions.Get(pod.Namespace, pod.Annotations[plan.NameAnnotation])
	if !ok || fn.Spec.Image != "" || fn.Status.Image != imageOf(pod.Spec.Containers) {
		return
	}
	f.mu.Lock()
	f.doubts[fn.UID] = true
	f.mu.Unlock()
}

// sweep has images removed that no function has.
func (f *Controller) sweep() {
	select {
	case f.sweeps <- struct{}{}:
	default:
	}
}

// keepSweeping removes images. What fails is told once, and tried again after a while.
func (f *Controller) keepSweeping(ctx context.Context) error {
	var pause time.Duration
	var retry <-chan time.Time
	for {
		select {
		case <-f.sweeps:
		case <-retry:
		case <-ctx.Done():
			return nil
		}
		err := f.images.Sweep(ctx, f.usedImages)
		if err == nil {
			pause, retry = 0, nil
			continue
		}
		if pause == 0 && ctx.Err() == nil {
			f.log.Warn("images that no function needs are still there; it is tried again", "error", err)
		}
		pause = min(max(2*pause, again), longestSweepPause)
		retry = time.After(pause)
	}
}

// usedImages are the images that functions and their instances have, by repository.
func (f *Controller) usedImages() map[string][]string {
	used := map[string][]string{}
	for _, fn := range f.functions.List() {
		used[plan.Repository(fn.Namespace, fn.Name)] = []string{fn.Status.Image}
	}
	add := func(o api.Object, containers []corev1.Container) {
		if name, ok := o.GetAnnotations()[plan.NameAnnotation]; ok && len(containers) > 0 {
			at := plan.Repository(o.GetNamespace(), name)
			if _, there := used[at]; there {
				used[at] = append(used[at], imageOf(containers))
			}
		}
	}
	for _, set := range f.sets.List() {
		add(set, set.Spec.Template.Spec.Containers)
	}
	for _, pod := range f.pods.List() {
		add(pod, pod.Spec.Containers)
	}
	return used
}
