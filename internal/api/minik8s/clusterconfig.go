package minik8s

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterConfigName is the name of the one ClusterConfig.
const ClusterConfigName = "cluster"

// ClusterConfig is the settings of the cluster that change while it runs. There is one, named "cluster";
// without it everything has its default.
type ClusterConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterConfigSpec `json:"spec,omitempty"`
}

// ClusterConfigSpec is the settings, by the part that heeds them.
type ClusterConfigSpec struct {
	Scheduler SchedulerConfig `json:"scheduler,omitempty"`
}

// SchedulerConfig is what the scheduler heeds.
type SchedulerConfig struct {
	// Strategy is how a node is chosen among those that fit: one of Strategies; empty is the first.
	Strategy string `json:"strategy,omitempty"`
}

// Strategies are the names that SchedulerConfig.Strategy may have, the default first.
var Strategies = []string{"spread", "random", "round-robin", "min-pods", "max-pods", "min-cpu", "min-mem"}

// StrategyOr is the strategy that is set, or the default.
func (c *SchedulerConfig) StrategyOr() string {
	if c.Strategy == "" {
		return Strategies[0]
	}
	return c.Strategy
}

// ClusterConfigList is a list of them, of length 0 or 1.
type ClusterConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterConfig `json:"items"`
}

// SwaggerDoc is what `kubectl explain` says.
func (ClusterConfig) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "ClusterConfig is the settings of the cluster that change while it runs. There is one, named cluster.",
		"metadata": "Standard object's metadata. The name is cluster.",
		"spec":     "The settings, by the part that heeds them.",
	}
}

// SwaggerDoc is what `kubectl explain` says.
func (ClusterConfigSpec) SwaggerDoc() map[string]string {
	return map[string]string{"": "The settings of the cluster.", "scheduler": "What the scheduler heeds."}
}

// SwaggerDoc is what `kubectl explain` says.
func (SchedulerConfig) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "The settings of the scheduler.",
		"strategy": "How a node is chosen among those that fit: spread (the default), random, round-robin, min-pods, max-pods, min-cpu or min-mem.",
	}
}

// DeepCopyInto makes out what c is.
func (c *ClusterConfig) DeepCopyInto(out *ClusterConfig) {
	*out = *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopy is a ClusterConfig of one's own.
func (c *ClusterConfig) DeepCopy() *ClusterConfig {
	if c == nil {
		return nil
	}
	out := &ClusterConfig{}
	c.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (c *ClusterConfig) DeepCopyObject() runtime.Object {
	if c == nil {
		return nil
	}
	return c.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *ClusterConfigList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &ClusterConfigList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]ClusterConfig, len(l.Items))
		for i := range l.Items {
			l.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}
