// Package minik8s has the Go types of minik8s' own kinds: the group minik8s.io/v1.
//
// It promises structs that look like Kubernetes' own: TypeMeta and ObjectMeta first, a spec that people write, a status
// that components write. Package api adds them to its table and scheme. Any package may import them. It holds no state.
package minik8s

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds, served at /apis/minik8s.io/v1.
var GroupVersion = schema.GroupVersion{Group: "minik8s.io", Version: "v1"}

// AddToScheme registers the types in a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ClusterConfig{}, &ClusterConfigList{}, &DNS{}, &DNSList{}, &GpuJob{}, &GpuJobList{},
		&SlurmCluster{}, &SlurmClusterList{}, &Function{}, &FunctionList{}, &FunctionCall{}, &FunctionCallList{}, &Workflow{}, &WorkflowList{},
		&WorkflowRun{}, &WorkflowRunList{}, &WorkflowStep{}, &WorkflowStepList{}, &Peer{}, &PeerList{},
		&PodAddress{}, &PodAddressList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
