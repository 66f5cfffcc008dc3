package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	plugintesting "k8s.io/kubernetes/pkg/scheduler/framework/plugins/testing"
	schedruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// upstream is Kubernetes' filters over one state of a cluster.
type upstream struct {
	t        *testing.T
	snapshot *cache.Snapshot
	plugins  []fwk.Plugin
}

// features are those that are on by default and that concern filters.
var features = feature.Features{
	EnableNodeInclusionPolicyInPodTopologySpread: true,
	EnableMatchLabelKeysInPodTopologySpread:      true,
}

func newUpstream(t *testing.T, nodes []*corev1.Node, pods []*corev1.Pod, namespaces []*corev1.Namespace) *upstream {
	metrics.Register() // the plugins count into them
	u := &upstream{t: t, snapshot: cache.NewSnapshot(pods, nodes)}
	var objects []runtime.Object
	for _, ns := range namespaces {
		objects = append(objects, ns)
	}
	add := func(args runtime.Object, f schedruntime.PluginFactory) {
		u.plugins = append(u.plugins, plugintesting.SetupPlugin(t.Context(), t, f, args, u.snapshot))
	}
	add(nil, schedruntime.FactoryAdapter(features, nodeunschedulable.New))
	add(nil, schedruntime.FactoryAdapter(features, nodename.New))
	add(nil, schedruntime.FactoryAdapter(features, tainttoleration.New))
	add(&config.NodeAffinityArgs{}, schedruntime.FactoryAdapter(features, nodeaffinity.New))
	add(nil, schedruntime.FactoryAdapter(features, nodeports.New))
	add(&config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{Type: config.LeastAllocated,
		Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}}}}, schedruntime.FactoryAdapter(features, noderesources.NewFit))
	add(&config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, schedruntime.FactoryAdapter(features, podtopologyspread.New))
	u.plugins = append(u.plugins, plugintesting.SetupPluginWithInformers(t.Context(), t,
		schedruntime.FactoryAdapter(features, interpodaffinity.New), &config.InterPodAffinityArgs{}, u.snapshot, objects))
	return u
}

// verdicts are the nodes that refuse a pod, each with the plugin that does and its reasons.
func (u *upstream) verdicts(pod *corev1.Pod) map[string]string {
	ctx, refused := u.t.Context(), map[string]string{}
	nodes, err := u.snapshot.NodeInfos().List()
	if err != nil {
		u.t.Fatal(err)
	}
	refuse := func(node string, p fwk.Plugin, s *fwk.Status) {
		if _, ok := refused[node]; !ok {
			refused[node] = p.Name() + ": " + s.Message()
		}
	}
	for _, p := range u.plugins {
		state := framework.NewCycleState()
		if pre, ok := p.(fwk.PreFilterPlugin); ok {
			result, status := pre.PreFilter(ctx, state, pod, nodes)
			if status.IsSkip() {
				continue
			}
			for _, n := range nodes {
				switch name := n.Node().Name; {
				case !status.IsSuccess():
					refuse(name, p, status)
				case !result.AllNodes() && !result.NodeNames.Has(name):
					refuse(name, p, status)
				}
			}
			if !status.IsSuccess() {
				continue
			}
		}
		filter, ok := p.(fwk.FilterPlugin)
		if !ok {
			u.t.Fatalf("%s is no filter", p.Name())
		}
		for _, n := range nodes {
			if s := filter.Filter(ctx, state, pod, n); !s.IsSuccess() {
				refuse(n.Node().Name, p, s)
			}
		}
	}
	return refused
}
