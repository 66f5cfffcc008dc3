package brief

import (
	"context"
	"sort"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// EventsOf returns the events about an object, the newest last.
func EventsOf(ctx context.Context, c client.Interface, obj api.Object) ([]*corev1.Event, error) {
	list, _, err := client.All[*corev1.Event](ctx, c, api.Events, client.ListOptions{
		// Events about objects without a namespace are stored in the default namespace.
		Namespace: orDefault(obj.GetNamespace()),
		Fields:    fields.OneTermEqualSelector("involvedObject.name", obj.GetName()),
	})
	if err != nil {
		return nil, err
	}
	kind := api.KindOf(obj)
	var out []*corev1.Event
	for _, e := range list {
		about := e.InvolvedObject
		// Reporters about a node often know only its name, and put it in place of the UID.
		same := about.UID == "" || about.UID == obj.GetUID() || string(about.UID) == obj.GetName()
		if same && about.Name == obj.GetName() && (kind == nil || about.Kind == kind.Kind) {
			out = append(out, e)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return EventTime(out[i]).Before(EventTime(out[j])) })
	return out, nil
}

func orDefault(namespace string) string {
	if namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}
