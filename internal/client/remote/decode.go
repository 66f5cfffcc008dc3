package remote

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// decode decodes an object, and sets its kind, which items of lists lack.
func decode(kind *api.Kind, data []byte) (api.Object, error) {
	obj := kind.New()
	if err := json.Unmarshal(data, obj); err != nil {
		return nil, fmt.Errorf("the server's answer is no %s: %w", kind.Kind, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind.GVK())
	return obj, nil
}

// decodeList reads a page of objects. The items are pointers into the decoder's one array.
func decodeList(kind *api.Kind, data []byte) (*client.List, error) {
	raw := kind.NewList()
	if err := json.Unmarshal(data, raw); err != nil {
		return nil, fmt.Errorf("the server's answer is no list of %s: %w", kind.Plural, err)
	}
	head, err := meta.ListAccessor(raw)
	if err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(raw)
	if err != nil {
		return nil, err
	}
	list := &client.List{
		Kind: kind, ResourceVersion: head.GetResourceVersion(), Continue: head.GetContinue(),
		Remaining: head.GetRemainingItemCount(), Items: make([]api.Object, 0, len(objects)),
	}
	for _, o := range objects {
		obj, ok := o.(api.Object)
		if !ok {
			return nil, fmt.Errorf("the list of %s holds a %T", kind.Plural, o)
		}
		obj.GetObjectKind().SetGroupVersionKind(kind.GVK())
		list.Items = append(list.Items, obj)
	}
	return list, nil
}
