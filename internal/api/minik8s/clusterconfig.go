package minik8s

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterConfigName is the name of the one ClusterConfig.
const ClusterConfigName = "cluster"

// ClusterConfig holds the settings of the cluster that can change while it runs. There is only one, named "cluster".
// Without it all settings have their defaults.
type ClusterConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterConfigSpec `json:"spec,omitempty"`
}

// ClusterConfigSpec holds the settings, grouped by the part that uses them.
type ClusterConfigSpec struct {
	Scheduler SchedulerConfig `json:"scheduler,omitempty"`
}

// SchedulerConfig holds the settings of the scheduler.
type SchedulerConfig struct {
	// Strategy is how a node is chosen among those that fit: one of Strategies. Empty means the first.
	Strategy string `json:"strategy,omitempty"`
}

// Strategies are the possible values of SchedulerConfig.Strategy, the default first.
var Strategies = []string{"spread", "random", "round-robin", "min-pods", "max-pods", "min-cpu", "min-mem"}

// StrategyOr returns the strategy that is set, or the default.
func (c *SchedulerConfig) StrategyOr() string {
	if c.Strategy == "" {
		return Strategies[0]
	}
	return c.Strategy
}

// ClusterConfigList is a list of ClusterConfigs, with 0 or 1 items.
type ClusterConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterConfig `json:"items"`
}

// SwaggerDoc returns the text for `kubectl explain`.
func (ClusterConfig) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "ClusterConfig is the settings of the cluster that change while it runs. There is one, named cluster.",
		"metadata": "Standard object's metadata. The name is cluster.",
		"spec":     "The settings, by the part that heeds them.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (ClusterConfigSpec) SwaggerDoc() map[string]string {
	return map[string]string{"": "The settings of the cluster.", "scheduler": "What the scheduler heeds."}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (SchedulerConfig) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "The settings of the scheduler.",
		"strategy": "How a node is chosen among those that fit: spread (the default), random, round-robin, min-pods, max-pods, min-cpu or min-mem.",
	}
}

// DeepCopyInto copies c to out.
func (c *ClusterConfig) DeepCopyInto(out *ClusterConfig) {
	*out = *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopy returns a copy that shares nothing with c.
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
