package deletion

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/session"
)

// UserObjects returns the objects that users created, in the order of deletion: owners before what they own, and
// namespaces last.
func UserObjects(ctx context.Context, s *session.Session) ([]api.Object, error) {
	kinds, err := s.Served(ctx)
	if err != nil {
		return nil, err
	}
	var owners, namespaces []api.Object
	for _, kind := range kinds {
		// Events and leases are created and removed by the system.
		if kind == api.Events || kind == api.Leases || !kind.Allows("delete") || (!kind.Namespaced && kind != api.Namespaces) {
			continue
		}
		list, err := s.API.List(ctx, kind, client.ListOptions{})
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
				// Its owner is deleted; while the owner exists, it would create it again.
			default:
				owners = append(owners, obj)
			}
		}
	}
	return append(owners, namespaces...), nil
}

// givenBySystem reports whether the system creates the object in every namespace, and creates it again if it is
// deleted.
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
