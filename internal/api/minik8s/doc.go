// Package minik8s is the Go types of the kinds that are our own: the group minik8s.io/v1.
//
// It promises structs that read like Kubernetes' own: TypeMeta and ObjectMeta first, a spec that people
// write, a status that parts write. Package api puts them into its table and its scheme; everything may
// import them. There is no state here.
package minik8s

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is where the kinds are served: /apis/minik8s.io/v1.
var GroupVersion = schema.GroupVersion{Group: "minik8s.io", Version: "v1"}

// AddToScheme makes the types known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ClusterConfig{}, &ClusterConfigList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
