package endpointslice

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/expect"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// workers is how many Services each queue works on at once.
const workers = 5

// Controller is the controller.
type Controller struct {
	client    client.Interface
	services  *informer.Informer[*corev1.Service]
	pods      *informer.Informer[*corev1.Pod]
	nodes     *informer.Informer[*corev1.Node]
	slices    *informer.Informer[*discoveryv1.EndpointSlice]
	endpoints *informer.Informer[*corev1.Endpoints]
	slicesOf  *owner.Index[*discoveryv1.EndpointSlice] // by the Service or the Endpoints
	index     *index

	// Each queue has the names of Services.
	sliceLoop, endpointsLoop, mirrorLoop *loop.Loop
	wroteSlices, wroteMirrors            *expect.Tracker[*discoveryv1.EndpointSlice]
	wroteEndpoints                       *expect.Tracker[*corev1.Endpoints]
}

// New makes the controller.
func New(c client.Interface, views *informer.Views, log *slog.Logger) *Controller {
	opts := informer.Options{Views: views, Log: log}
	e := &Controller{client: c, index: newIndex(),
		services:  informer.New[*corev1.Service](c, api.Services, opts),
		pods:      informer.New[*corev1.Pod](c, api.Pods, opts),
		nodes:     informer.New[*corev1.Node](c, api.Nodes, opts),
		slices:    informer.New[*discoveryv1.EndpointSlice](c, api.EndpointSlices, opts),
		endpoints: informer.New[*corev1.Endpoints](c, api.Endpoints, opts),
	}
	e.slicesOf = owner.NewIndex(e.slices)
	e.sliceLoop = loop.New("endpointslice", log, e.reconcileSlices)
	e.endpointsLoop = loop.New("endpoints", log, e.reconcileEndpoints)
	e.mirrorLoop = loop.New("endpointslicemirroring", log, e.reconcileMirror)
	e.wroteSlices = expect.New(c, e.slices, e.sliceLoop.Add)
	e.wroteMirrors = expect.New(c, e.slices, e.mirrorLoop.Add)
	e.wroteEndpoints = expect.New(c, e.endpoints, e.endpointsLoop.Add)
	e.services.OnChange(e.serviceChanged)
	e.pods.OnChange(e.podChanged)
	e.nodes.OnChange(e.nodeChanged)
	e.slices.OnChange(e.sliceChanged)
	e.endpoints.OnChange(e.endpointsChanged)
	return e
}

// Run works until ctx ends.
func (e *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{e.nodes, e.services, e.slices, e.endpoints, e.pods},
		e.sliceLoop.Workers(workers), e.endpointsLoop.Workers(workers), e.mirrorLoop.Workers(1))
}

func keyOf(obj api.Object) loop.Key {
	return loop.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// selected queues a Service whose endpoints are to be looked at.
func (e *Controller) selected(key loop.Key) {
	e.sliceLoop.Add(key)
	e.endpointsLoop.Add(key)
}

func (e *Controller) serviceChanged(old, now *corev1.Service) {
	svc := now
	if svc == nil {
		svc = old
	}
	key := keyOf(svc)
	e.index.serviceChanged(key, now)
	if old != nil && now != nil && apiequality.Semantic.DeepEqual(old.Spec, now.Spec) && apiequality.Semantic.DeepEqual(old.Labels, now.Labels) {
		return // its status
	}
	e.selected(key)
	if selectorOf(now) == nil { // others say what its endpoints are, or it is gone
		e.mirrorLoop.Add(key)
	} else if old != nil && selectorOf(old) == nil {
		e.mirrorLoop.Add(key)
	}
}

func (e *Controller) podChanged(old, now *corev1.Pod) {
	if old != nil && now != nil && alike(old, now) {
		return
	}
	for _, key := range e.index.podChanged(old, now) {
		e.selected(key)
	}
}

// alike reports whether two versions of a pod are the same endpoint of the same Services.
func alike(a, b *corev1.Pod) bool {
	return a.UID == b.UID && addressOf(a) == addressOf(b) && serves(a) == serves(b) && ready(a) == ready(b) && a.Spec.NodeName == b.Spec.NodeName &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) && apiequality.Semantic.DeepEqual(a.Labels, b.Labels)
}

func (e *Controller) nodeChanged(old, now *corev1.Node) {
	if zoneOf(old) == zoneOf(now) {
		return
	}
	for _, svc := range e.services.List() {
		e.sliceLoop.Add(keyOf(svc))
	}
}

func zoneOf(n *corev1.Node) string {
	if n == nil {
		return ""
	}
	return n.Labels[corev1.LabelTopologyZone]
}

func (e *Controller) zone(node string) string {
	n, _ := e.nodes.Get("", node)
	return zoneOf(n)
}

func (e *Controller) sliceChanged(old, now *discoveryv1.EndpointSlice) {
	for _, s := range []*discoveryv1.EndpointSlice{old, now} {
		if s == nil {
			continue
		}
		ref := metav1.GetControllerOfNoCopy(s)
		if ref == nil {
			continue
		}
		key := loop.Key{Namespace: s.Namespace, Name: ref.Name}
		switch s.Labels[discoveryv1.LabelManagedBy] {
		case sliceKeeper:
			e.sliceLoop.Add(key)
		case mirrorKeeper:
			e.mirrorLoop.Add(key)
		}
	}
}

func (e *Controller) endpointsChanged(old, now *corev1.Endpoints) {
	if now == nil {
		now = old
	}
	key := keyOf(now)
	if svc, ok := e.services.Get(key.Namespace, key.Name); ok && selectorOf(svc) != nil || now.Labels[managedBy] == endpointsOwner {
		e.endpointsLoop.Add(key) // somebody may have changed what is ours
		if ok && selectorOf(svc) != nil {
			return
		}
	}
	e.mirrorLoop.Add(key)
}

// podsOf are the pods of a Service.
func (e *Controller) podsOf(key loop.Key) []*corev1.Pod {
	var out []*corev1.Pod
	for _, name := range e.index.podsOf(key, e.pods.List) {
		if pod, ok := e.pods.Get(key.Namespace, name); ok {
			out = append(out, pod)
		}
	}
	return out
}
