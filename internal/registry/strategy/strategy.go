package strategy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
	"minik8s/internal/registry"
	"minik8s/internal/registry/review"
	"minik8s/internal/tokens"
)

// Settings are what a cluster decides for itself.
type Settings struct {
	// Tokens signs the tokens of service accounts; nil: there are none.
	Tokens *tokens.Authority
	// MountTokens has pods get the token of their service account by themselves, as in Kubernetes. It needs Tokens, and
	// the ConfigMap of the cluster's CA in each namespace.
	MountTokens bool
	// MachinePorts are those that every machine has for itself.
	MachinePorts []MachinePort
	// PodRange has the addresses of all pods; invalid: Nodes have only the ranges that they ask for.
	PodRange netip.Prefix
	// ServiceRange has the addresses that Services get, and NodePorts the ports; zero: as config has them by default.
	ServiceRange netip.Prefix
	NodePorts    config.PortRange
	// LBPool has the addresses of load balancers; empty: they have those of the nodes.
	LBPool config.AddressPool
	// ClusterDomain has the names of Services and pods; empty: no name is theirs.
	ClusterDomain string
}

// MachinePort is a port that machines have for themselves. Of says what for.
type MachinePort struct {
	Protocol corev1.Protocol
	Port     int
	Of       string
	// While there is an object of this kind they have it; nil: always.
	While *api.Kind
}

// All returns the strategy of each kind of package api that has one.
func All(set Settings) map[*api.Kind]*registry.Strategy {
	if !set.ServiceRange.IsValid() {
		set.ServiceRange = netip.MustParsePrefix(config.DefaultServiceCIDR)
	}
	if set.NodePorts == (config.PortRange{}) {
		set.NodePorts, _ = config.ParsePortRange(config.DefaultNodePorts) //nolint:errcheck // it is a constant
	}
	return map[*api.Kind]*registry.Strategy{
		api.Namespaces:                 namespaceStrategy(),
		api.Nodes:                      nodeStrategy(set.PodRange),
		api.Pods:                       podStrategy(set.MountTokens, nodePorts{set.NodePorts}),
		api.Services:                   serviceStrategy(set),
		api.Endpoints:                  endpointsStrategy(),
		api.EndpointSlices:             endpointSliceStrategy(),
		api.ReplicationControllers:     replicationControllerStrategy(),
		api.PodTemplates:               podTemplateStrategy(),
		api.ConfigMaps:                 configMapStrategy(),
		api.Secrets:                    secretStrategy(),
		api.Events:                     eventStrategy(),
		api.ServiceAccounts:            serviceAccountStrategy(set.Tokens),
		api.Leases:                     leaseStrategy(),
		api.CertificateSigningRequests: csrStrategy(),
		api.Ingresses:                  ingressStrategy(set),
		api.IngressClasses:             ingressClassStrategy(),
		api.NetworkPolicies:            networkPolicyStrategy(),
		api.ServiceCIDRs:               serviceCIDRStrategy(set),
		api.IPAddresses:                ipAddressStrategy(),
		api.PriorityClasses:            priorityClassStrategy(),
		api.ReplicaSets:                replicaSetStrategy(),
		api.Deployments:                deploymentStrategy(),
		api.DaemonSets:                 daemonSetStrategy(),
		api.ControllerRevisions:        controllerRevisionStrategy(),
		api.Jobs:                       jobStrategy(),
		api.ClusterConfigs:             clusterConfigStrategy(),
		api.DNSes:                      dnsStrategy(set),
		api.GpuJobs:                    gpuJobStrategy(),
		api.Functions:                  functionStrategy(),
		api.FunctionCalls:              functionCallStrategy(),
		api.Workflows:                  workflowStrategy(),
		api.WorkflowRuns:               workflowRunStrategy(),
		api.WorkflowSteps:              workflowStepStrategy(),
		api.SlurmClusters:              slurmClusterStrategy(),
		api.APIServices:                apiServiceStrategy(),
		api.HorizontalPodAutoscalers:   horizontalPodAutoscalerStrategy(),

		api.HorizontalPodAutoscalersV1:      {Dialect: dialect.For(api.HorizontalPodAutoscalersV1)},
		api.HorizontalPodAutoscalersV2beta2: {Dialect: dialect.For(api.HorizontalPodAutoscalersV2beta2)},

		api.TokenReviews:              {Answer: review.Token(set.Tokens)},
		api.SelfSubjectReviews:        {Answer: review.Self},
		api.SubjectAccessReviews:      {Answer: review.Access},
		api.LocalSubjectAccessReviews: {Answer: review.LocalAccess},
		api.SelfSubjectAccessReviews:  {Answer: review.SelfAccess},
		api.SelfSubjectRulesReviews:   {Answer: review.SelfRules},
	}
}

// onOne adapts a func for one type to a row for all types. The registry calls a row only with objects of its own
// kind.
func onOne[T api.Object](f func(T)) func(api.Object) {
	return func(obj api.Object) { f(obj.(T)) }
}

// selectable is Fields for funcs of one type.
func selectable[T api.Object](fields map[string]func(obj T) string) map[string]func(obj api.Object) string {
	out := make(map[string]func(obj api.Object) string, len(fields))
	for name, get := range fields {
		out[name] = func(obj api.Object) string { return get(obj.(T)) }
	}
	return out
}

// onStep is onOne for funcs of an old and a new object.
func onStep[T api.Object](f func(obj, old T)) func(obj, old api.Object) {
	return func(obj, old api.Object) { f(obj.(T), old.(T)) }
}

// warnings is onOne for warnings that need no other objects.
func warnings[T api.Object](f func(T) []string) func(api.Object, registry.Lister) []string {
	return func(obj api.Object, _ registry.Lister) []string { return f(obj.(T)) }
}

// checkOne is onOne for a validation.
func checkOne[T api.Object](f func(T) field.ErrorList) func(api.Object) field.ErrorList {
	return func(obj api.Object) field.ErrorList { return f(obj.(T)) }
}

// checkStep is onStep for a validation.
func checkStep[T api.Object](f func(obj, old T) field.ErrorList) func(obj, old api.Object) field.ErrorList {
	return func(obj, old api.Object) field.ErrorList { return f(obj.(T), old.(T)) }
}
