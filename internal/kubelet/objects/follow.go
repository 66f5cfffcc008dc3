package objects

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/informer/reflector"
)

// follow keeps a watched object up to date until ctx ends. It ends ctx itself, by stop, when the object is immutable.
func (k *Manager) follow(ctx context.Context, ref Ref, b *watchedObject) {
	set := func(obj api.Object) {
		k.set(b, obj)
		if obj != nil && immutable(obj) {
			b.stop()
		}
	}
	r := reflector.Reflector{Client: k.client, Kind: ref.Kind, Namespace: ref.Namespace, Log: k.log,
		Fields: fields.OneTermEqualSelector("metadata.name", ref.Name),
		Replace: func(items []api.Object, _ string) {
			var obj api.Object
			if len(items) > 0 {
				obj = items[0]
			}
			if !k.same(b, obj) {
				set(obj)
			}
		},
		Apply: func(e client.Event) {
			switch e.Type {
			case client.Bookmark:
			case client.Deleted:
				set(nil)
			default:
				set(e.Object)
			}
		},
		Failed: func(err error) { k.fail(b, err) }}
	r.Run(ctx)
}

// same reports whether a list has brought nothing new.
func (k *Manager) same(b *watchedObject, obj api.Object) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !b.known || (b.obj == nil) != (obj == nil) {
		return false
	}
	return obj == nil || b.obj.GetUID() == obj.GetUID() && b.obj.GetResourceVersion() == obj.GetResourceVersion()
}
