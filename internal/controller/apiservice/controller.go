package apiservice

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Served tells which versions of groups the cluster serves itself. changed is closed when there are others.
type Served func() (list []schema.GroupVersion, changed <-chan struct{})

// Config configures a controller.
type Config struct {
	Served Served
	// Ask sends a request to the Service of an APIService; the error says why no good answer came.
	Ask func(ctx context.Context, a *apiregistrationv1.APIService) error
	// Again is how often a Service is asked; 0: every 30 seconds, as in Kubernetes.
	Again time.Duration
}

// again is the default of Config.Again.
const again = 30 * time.Second

const workers = 4

// soon is when a Service is asked again that did not answer once; each time that it fails again it is twice as long, up to
// Config.Again.
const soon = 100 * time.Millisecond

// Controller is the controller.
type Controller struct {
	cfg      Config
	client   client.Interface
	objects  *informer.Informer[*apiregistrationv1.APIService]
	services *informer.Informer[*corev1.Service]
	slices   *informer.Informer[*discoveryv1.EndpointSlice]
	loop     *loop.Loop

	asking sync.WaitGroup

	mu      sync.Mutex
	namedBy map[loop.Key]map[string]bool // the APIServices that name a Service
	checks  map[string]*check            // by the APIServices' names
}

// check is a question to a Service. No worker waits for the answer: Services that do not answer, however many, hold nobody up.
type check struct {
	of       *apiregistrationv1.APIService // as it was when its Service was asked
	answered bool
	err      error
	failed   int // times in a row
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, cfg Config, log *slog.Logger) *Controller {
	if cfg.Again == 0 {
		cfg.Again = again
	}
	opts := informer.Options{Views: views, Log: log}
	k := &Controller{cfg: cfg, client: c, namedBy: map[loop.Key]map[string]bool{}, checks: map[string]*check{},
		objects:  informer.New[*apiregistrationv1.APIService](c, api.APIServices, opts),
		services: informer.New[*corev1.Service](c, api.Services, opts),
		slices:   informer.New[*discoveryv1.EndpointSlice](c, api.EndpointSlices, opts),
	}
	k.loop = loop.New("apiservice", log, k.reconcile)
	k.objects.OnChange(k.objectChanged)
	k.services.OnChange(func(old, now *corev1.Service) {
		if old != nil && now != nil && apiequality.Semantic.DeepEqual(old.Spec, now.Spec) {
			return
		}
		if now == nil {
			now = old
		}
		k.wake(loop.Key{Namespace: now.Namespace, Name: now.Name})
	})
	k.slices.OnChange(func(old, now *discoveryv1.EndpointSlice) {
		for _, s := range []*discoveryv1.EndpointSlice{old, now} {
			if s != nil {
				k.wake(loop.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]})
			}
		}
	})
	return k
}

// Run works until ctx ends.
func (k *Controller) Run(ctx context.Context, ready func()) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer k.asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return loop.Drive(ctx, func() {
		ready()
		wg.Go(func() { k.follow(ctx) })
	}, []supervise.Source{k.services, k.slices, k.objects}, k.loop.Workers(workers))
}

// follow queues what is served, and all there is again when that changes: what is served no more goes.
func (k *Controller) follow(ctx context.Context) {
	for {
		list, changed := k.cfg.Served()
		for _, gv := range list {
			k.loop.Add(loop.Key{Name: api.APIServiceName(gv)})
		}
		for _, a := range k.objects.List() {
			k.loop.Add(loop.Key{Name: a.Name})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (k *Controller) objectChanged(old, now *apiregistrationv1.APIService) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if svc, ok := serviceOf(old); ok {
		if delete(k.namedBy[svc], old.Name); len(k.namedBy[svc]) == 0 {
			delete(k.namedBy, svc)
		}
	}
	if svc, ok := serviceOf(now); ok {
		if k.namedBy[svc] == nil {
			k.namedBy[svc] = map[string]bool{}
		}
		k.namedBy[svc][now.Name] = true
	}
	switch {
	case now == nil:
		delete(k.checks, old.Name)
		k.loop.Add(loop.Key{Name: old.Name})
	case old == nil || !apiequality.Semantic.DeepEqual(old.Spec, now.Spec): // its status is ours
		k.loop.Add(loop.Key{Name: now.Name})
	}
}

func serviceOf(a *apiregistrationv1.APIService) (loop.Key, bool) {
	if a == nil || a.Spec.Service == nil {
		return loop.Key{}, false
	}
	return loop.Key{Namespace: a.Spec.Service.Namespace, Name: a.Spec.Service.Name}, true
}

// wake queues the APIServices that name a Service.
func (k *Controller) wake(svc loop.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.namedBy[svc] {
		k.loop.Add(loop.Key{Name: name})
	}
}

func (k *Controller) reconcile(ctx context.Context, key loop.Key) error {
	a, err := client.Get[*apiregistrationv1.APIService](ctx, k.client, client.Key{Kind: api.APIServices, Name: key.Name})
	list, _ := k.cfg.Served()
	i := slices.IndexFunc(list, func(gv schema.GroupVersion) bool { return api.APIServiceName(gv) == key.Name })
	switch {
	case apierrors.IsNotFound(err) && i < 0:
		return nil
	case apierrors.IsNotFound(err):
		if _, err = k.client.Create(ctx, api.LocalAPIService(list[i]), client.WriteOptions{}); apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	case err != nil || a.DeletionTimestamp != nil:
		return err
	case i < 0 && surplus(a):
		uid := a.UID
		_, err = k.client.Delete(ctx, client.KeyOf(a), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	return k.judge(ctx, a)
}

// judge says whether an APIService is available, and has its Service asked, now and again later.
func (k *Controller) judge(ctx context.Context, a *apiregistrationv1.APIService) error {
	var svc *corev1.Service
	var list []*discoveryv1.EndpointSlice
	if at, ok := serviceOf(a); ok {
		svc, _ = k.services.Get(at.Namespace, at.Name)
		for _, s := range k.slices.List() {
			if s.Namespace == at.Namespace && s.Labels[discoveryv1.LabelServiceName] == at.Name {
				list = append(list, s)
			}
		}
	}
	v, ask := judge(a, svc, list)
	if !ask || k.cfg.Ask == nil {
		if ask {
			v = passed
		}
		return k.say(ctx, a, v)
	}
	answered, failed, err := k.ask(ctx, a)
	if !answered {
		return nil // it comes again with the answer
	}
	pause := k.cfg.Again
	if v = passed; err != nil {
		v = missing("FailedDiscoveryCheck", "%v", err)
		pause = min(soon<<min(failed-1, 16), pause)
	}
	if err := k.say(ctx, a, v); err != nil {
		return err
	}
	k.loop.AddAfter(loop.Key{Name: a.Name}, pause)
	return nil
}

// ask takes the answer of an APIService's Service, with how often it has failed in a row. Without one it asks, unless that is
// under way, and has the APIService looked at again when the answer is there.
func (k *Controller) ask(ctx context.Context, a *apiregistrationv1.APIService) (answered bool, failed int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.checks[a.Name]
	if c == nil {
		c = &check{}
		k.checks[a.Name] = c
	}
	switch {
	case c.of != nil && !c.answered:
		return false, 0, nil
	case c.of != nil && c.of.UID == a.UID && apiequality.Semantic.DeepEqual(c.of.Spec, a.Spec):
		c.of, c.answered = nil, false
		return true, c.failed, c.err
	}
	c.of, c.answered = a, false // an answer to what was asked of another one is none
	k.asking.Go(func() {
		err := k.cfg.Ask(ctx, a)
		if ctx.Err() != nil {
			return
		}
		k.mu.Lock()
		if c.answered, c.err = true, err; err == nil {
			c.failed = 0
		} else {
			c.failed++
		}
		k.mu.Unlock()
		k.loop.Add(loop.Key{Name: a.Name})
	})
	return false, 0, nil
}

// say writes the condition, unless it says so already. Its time is that of the last change of its status.
func (k *Controller) say(ctx context.Context, a *apiregistrationv1.APIService, v verdict) error {
	now := apiregistrationv1.APIServiceCondition{Type: apiregistrationv1.Available, Status: v.status, Reason: v.reason, Message: v.message,
		LastTransitionTime: metav1.NewTime(clock.Now())}
	upd := a.DeepCopy()
	i := slices.IndexFunc(upd.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool { return c.Type == now.Type })
	if i < 0 {
		upd.Status.Conditions = append(upd.Status.Conditions, now)
	} else {
		have := upd.Status.Conditions[i]
		if have.Status == now.Status {
			now.LastTransitionTime = have.LastTransitionTime
		}
		if have == now {
			return nil
		}
		upd.Status.Conditions[i] = now
	}
	_, err := k.client.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
