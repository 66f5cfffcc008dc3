package deletion

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// UserObjects are the objects that users made, in the order in which they are deleted: owners before what they own, and namespaces last.
func UserObjects(ctx context.Context, c client.Interface) ([]api.Object, error) {
	var owners, namespaces []api.Object
	for _, kind := range api.Kinds {
		// Events and leases come from the system, and go by themselves.
		if kind == api.Events || kind == api.Leases || (!kind.Namespaced && kind != api.Namespaces) {
			continue
		}
		list, err := c.List(ctx, kind, client.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, obj := range list.Items {
			switch {
			case kind == api.Namespaces:
				if name := obj.GetName(); name != metav1.NamespaceDefault && !slices.Contains(api.SystemNamespaces, name) {
					namespaces = append(namespaces, obj)
				}
			case slices.Contains(api.SystemNamespaces, obj.GetNamespace()) || givenBySystem(kind, obj):
			case metav1.GetControllerOf(obj) != nil:
				// Its owner is deleted, and would make it anew before that.
			default:
				owners = append(owners, obj)
			}
		}
	}
	return append(owners, namespaces...), nil
}

// givenBySystem names what appears by itself in every namespace, and again when it is deleted.
func givenBySystem(kind *api.Kind, obj api.Object) bool {
	switch kind.Kind {
	case "ServiceAccount":
		return obj.GetName() == "default"
	case "ConfigMap":
		return obj.GetName() == "kube-root-ca.crt"
	case "Service", "Endpoints", "EndpointSlice":
		return obj.GetNamespace() == metav1.NamespaceDefault && obj.GetName() == "kubernetes"
	}
	return false
}
