package kubelet

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/informer/reflector"
)

// watchPods passes every pod of this node to its worker until ctx ends. known is called once, when there are the pods of
// the API or, while that cannot be reached, those of the last run; synced once, when there are those of the API.
func (k *Kubelet) watchPods(ctx context.Context, known, synced func()) {
	listed := false
	known, synced = sync.OnceFunc(known), sync.OnceFunc(synced)
	r := reflector.Reflector{Client: k.client, Kind: api.Pods, Fields: fields.OneTermEqualSelector("spec.nodeName", k.cfg.NodeName),
		Log: k.log,
		Replace: func(items []api.Object, _ string) {
			listed = true
			k.replace(ctx, items)
			known()
			synced()
		},
		Failed: func(err error) {
			// An API that refuses is there, and knows that these pods are not this machine's any more.
			if !listed && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
				listed = true
				k.fromCheckpoints(ctx)
				known()
			}
		},
		Apply: func(e client.Event) {
			switch e.Type {
			case client.Bookmark:
			case client.Deleted:
				k.podDeleted(e.Object.GetUID())
			default:
				k.podChanged(ctx, e.Object.(*corev1.Pod))
			}
		}}
	r.Run(ctx)
}

// fromCheckpoints goes on with the pods that an earlier run has written down, until the API answers. What only the
// runtime has is left alone: the API may know more.
func (k *Kubelet) fromCheckpoints(ctx context.Context) {
	if k.checkpoints == nil {
		return
	}
	for _, pod := range k.checkpoints.Load() {
		if pod.Spec.NodeName == k.cfg.NodeName {
			k.podChanged(ctx, pod)
		}
	}
}

// replace applies the list of all pods of the node: a known pod that is not in it is deleted, and one that only the
// runtime has is an orphan. Pods that were started before come first, so that they are admitted before new ones when
// not all fit.
func (k *Kubelet) replace(ctx context.Context, items []api.Object) {
	pods := make([]*corev1.Pod, len(items))
	for i, obj := range items {
		pods[i] = obj.(*corev1.Pod)
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		sa, sb := a.Status.StartTime, b.Status.StartTime
		switch {
		case sa != nil && sb == nil:
			return -1
		case sa == nil && sb != nil:
			return 1
		}
		return a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time)
	})
	there := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		there[p.UID] = true
		k.podChanged(ctx, p)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, w := range k.workers {
		if !there[uid] {
			w.send(func(b *inbox) { b.objectDeleted = true })
		}
	}
	for uid := range k.found {
		if !there[uid] {
			k.startWorker(ctx, uid).send(func(b *inbox) { b.objectDeleted = true })
		}
	}
	for uid := range k.ended {
		if !there[uid] {
			delete(k.ended, uid)
		}
	}
	if k.checkpoints != nil {
		k.checkpoints.Keep(there)
	}
	k.dropLeftovers(ctx, there)
}

// podChanged passes a pod's object to its worker.
func (k *Kubelet) podChanged(ctx context.Context, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended[pod.UID] {
		return
	}
	w := k.workers[pod.UID]
	if w == nil {
		w = k.startWorker(ctx, pod.UID)
		started := pod.Status.StartTime != nil || len(w.view.Containers) > 0
		w.isNew = !started && pod.DeletionTimestamp == nil
		w.overcommit = k.admission.admit(pod, w.isNew)
	}
	w.send(func(b *inbox) { b.take(pod) })
	if k.checkpoints != nil {
		k.checkpoints.Put(pod)
	}
}

// podDeleted tells the worker that the pod's object is deleted.
func (k *Kubelet) podDeleted(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ended, uid)
	if k.checkpoints != nil {
		k.checkpoints.Drop(uid)
	}
	if w := k.workers[uid]; w != nil {
		w.send(func(b *inbox) { b.objectDeleted = true })
	}
}
