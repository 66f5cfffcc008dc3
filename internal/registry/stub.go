package registry

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
)

type Binding struct {
	Node        string
	UID         types.UID
	Annotations map[string]string
}

func bound(old api.Object, b Binding, now time.Time) (api.Object, error) {
	p := old.DeepCopyObject().(*corev1.Pod)
	p.Spec.NodeName = b.Node
	return p, nil
}
func strategies() map[*api.Kind]*Strategy {
	m := map[*api.Kind]*Strategy{}
	for _, k := range api.Kinds {
		m[k] = &Strategy{}
	}
	m[api.Namespaces] = &Strategy{}
	m[api.Pods] = &Strategy{CopyStatus: func(d, s api.Object) { d.(*corev1.Pod).Status = s.(*corev1.Pod).Status }}
	return m
}
