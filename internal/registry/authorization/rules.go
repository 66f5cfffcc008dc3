package authorization

import (
	"slices"
	"strings"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/membership"
)

// rule allows some verbs on some kinds or paths.
type rule struct {
	kinds []*api.Kind // nil: every kind
	sub   string      // "" is the object itself
	// groups, instead of kinds: everything in these API groups, subresources too.
	groups []string
	verbs  []string // nil: every verb
	paths  []string // instead of kinds: non-resource paths; "/x/*" is everything below /x
}

func (r rule) allows(q Attributes) bool {
	if r.verbs != nil && !slices.Contains(r.verbs, q.Verb) {
		return false
	}
	if q.Kind == nil || r.paths != nil {
		return q.Kind == nil && slices.ContainsFunc(r.paths, func(p string) bool { return pathMatches(p, q.Path) })
	}
	if r.groups != nil {
		return slices.Contains(r.groups, q.Kind.Group)
	}
	return (r.kinds == nil || slices.Contains(r.kinds, q.Kind)) && r.sub == q.Sub
}

func pathMatches(pattern, path string) bool {
	if below, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, below)
	}
	return pattern == path
}

// anyone is what every authenticated user may do: find out what the API serves, and its health.
var anyone = []rule{
	{verbs: []string{"get", "head"}, paths: []string{
		"/", "/api", "/api/*", "/apis", "/apis/*", "/openapi/*", "/version", "/version/*",
		"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*",
		"/.well-known/openid-configuration", "/openid/v1/jwks"}},
	may([]string{"create"}, api.SelfSubjectReviews, api.SelfSubjectAccessReviews, api.SelfSubjectRulesReviews),
}

func anyoneMay(q Attributes) bool {
	return slices.ContainsFunc(anyone, func(r rule) bool { return r.allows(q) })
}

var (
	reading  = []string{"get", "list", "watch"}
	changing = []string{"update", "patch"}
	keeping  = []string{"create", "delete", "patch"} // of pods, by their owners' controllers
)

func may(verbs []string, kinds ...*api.Kind) rule { return rule{kinds: kinds, verbs: verbs} }

func mayBelow(sub string, verbs []string, kinds ...*api.Kind) rule {
	return rule{kinds: kinds, sub: sub, verbs: verbs}
}

// recording is what an event recorder may do.
var recording = may([]string{"create", "update", "patch"}, api.Events)

// asking is what a machine may do to get a certificate, as Kubernetes' system:node-bootstrapper.
var asking = may([]string{"create", "get", "list", "watch"}, api.CertificateSigningRequests)

// becoming is what a machine may do that shows a join token for masters.
var becoming = rule{verbs: []string{"post"}, paths: []string{membership.KeysPath}}

// comparing is what a machine of the cluster may do at its start.
var comparing = rule{verbs: []string{"get"}, paths: []string{membership.SettingsPath}}

// Scraper is the service account that Prometheus is given by deploy/prometheus/account.yaml. It learns what runs where, and
// reads metrics, and can change nothing.
const Scraper = "system:serviceaccount:kube-system:prometheus"

// scraping is what discovery (kubernetes_sd_configs) and scraping need.
var scraping = []rule{
	may(reading, api.Nodes, api.Pods, api.Services, api.Endpoints, api.EndpointSlices, api.Ingresses),
	mayBelow(NodeMetrics, []string{"get"}, api.Nodes),
	mayBelow(NodeStats, []string{"get"}, api.Nodes),
	mayBelow(NodeHealth, []string{"get"}, api.Nodes),
	{verbs: []string{"get", "head"}, paths: []string{"/metrics", "/metrics/*"}},
}

// measured are the API groups of what a Prometheus knows, of which autoscalers ask. That may be the names and labels of Secrets, and
// more than was meant for a namespace: so nobody else may read them but those who may read all.
var measured = rule{verbs: []string{"get", "list"}, groups: []string{"custom.metrics.k8s.io", "external.metrics.k8s.io"}}

// partRules lists what each part may do, and therefore which part writes what. Two parts write the same field only
// where one speaks for another that is silent: nodelifecycle marks the pods of a lost node as not ready, which is
// otherwise written by their kubelet.
var partRules = map[string][]rule{
	"system:scheduler": {
		may(reading, api.Pods, api.Nodes, api.Namespaces, api.ClusterConfigs),
		mayBelow("binding", []string{"create"}, api.Pods),
		mayBelow("status", changing, api.Pods), // the PodScheduled condition of a pod without a node
		recording,
	},
	"system:metrics":       {may(reading, api.Nodes, api.Pods)}, // what is measured
	"system:metrics-query": {{verbs: []string{"list"}}},         // the names of what a metric may describe: any kind
	"system:views":         {{verbs: reading}},                  // what informers share; a part joins only where it may list itself
	"system:sightings":     {may(reading, api.Nodes, api.Jobs)}, // whose times another master may have written
	"system:leader":        {may([]string{"get", "create", "update"}, api.Leases)},
	"system:membership":    {may([]string{"get"}, api.Nodes)}, // whose name a further master asks for
	"system:namespace-controller": {
		{verbs: []string{"get", "list", "watch", "delete"}},
		mayBelow("finalize", changing, api.Namespaces),
		mayBelow("status", changing, api.Namespaces),
	},
	"system:serviceaccount-controller": {
		may(reading, api.Namespaces),
		may([]string{"get", "list", "watch", "create"}, api.ServiceAccounts),
		may([]string{"get", "list", "watch", "create", "update"}, api.ConfigMaps),
	},
	"system:nodelifecycle-controller": {
		may([]string{"get", "list", "watch", "update", "delete"}, api.Nodes), // taints; lost ones go
		mayBelow("status", changing, api.Nodes, api.Pods),                    // conditions of silent nodes, and of their pods
		may(reading, api.Pods),
		may(reading, api.Leases),
		recording,
	},
	"system:replicaset-controller": {
		may(reading, api.ReplicaSets, api.ReplicationControllers, api.Pods),
		may(keeping, api.Pods),
		mayBelow("status", changing, api.ReplicaSets, api.ReplicationControllers),
		recording,
	},
	"system:deployment-controller": {
		may(reading, api.Deployments, api.ReplicaSets),
		may([]string{"create", "update", "patch", "delete"}, api.ReplicaSets),
		mayBelow("status", changing, api.Deployments), // and the revision annotation
		recording,
	},
	"system:daemonset-controller": {
		may(reading, api.DaemonSets, api.Nodes, api.Pods, api.ControllerRevisions),
		may(keeping, api.Pods),
		may([]string{"create", "update", "patch", "delete"}, api.ControllerRevisions),
		mayBelow("status", changing, api.DaemonSets),
		recording,
	},
	"system:job-controller": {
		may(reading, api.Jobs, api.Pods),
		may(keeping, api.Pods), // and remove the finalizer with which pods are counted
		may([]string{"delete"}, api.Jobs),
		mayBelow("status", changing, api.Jobs),
		recording,
	},
	"system:endpointslice-controller": {
		may(reading, api.Services, api.Pods, api.Nodes),
		may([]string{"get", "list", "watch", "create", "update", "delete"}, api.EndpointSlices, api.Endpoints),
	},
	"system:kube-proxy": {may(reading, api.Services, api.EndpointSlices, api.Nodes)},
	"system:ingress-controller": {
		may(reading, api.Ingresses, api.IngressClasses, api.Services, api.Nodes),
		may([]string{"create"}, api.IngressClasses), // its own
		mayBelow("status", changing, api.Ingresses), // the addresses at which they are reached
		recording,
	},
	"system:dns-controller": {
		may(reading, api.DNSes, api.Services, api.EndpointSlices, api.ServiceCIDRs),
		mayBelow("status", changing, api.DNSes), // whether what they name exists
		recording,
	},
	"system:gpu-controller": {
		may(reading, api.GpuJobs, api.SlurmClusters),
		may(changing, api.GpuJobs), // the finalizer
		mayBelow("status", changing, api.GpuJobs, api.SlurmClusters),
		may([]string{"get"}, api.Secrets, api.ConfigMaps), // logins, variables, sources
		may([]string{"get"}, api.Namespaces),              // what tells this cluster from others
		recording,
	},
	"system:function-controller": {
		may(reading, api.Functions, api.FunctionCalls, api.ReplicaSets, api.Pods),
		{verbs: []string{"list", "watch"}}, // what triggers ask for: who writes one must be allowed to himself
		mayBelow("status", changing, api.Functions, api.FunctionCalls),
		may([]string{"create", "update", "patch", "delete"}, api.ReplicaSets), // of instances
		may([]string{"create", "delete"}, api.FunctionCalls),                  // for callers who do not wait; old results go
		mayBelow(minik8s.FunctionCallSubresource, []string{"create"}, api.Functions),
		may([]string{"get", "list", "watch", "create", "update", "delete"}, api.Services, api.EndpointSlices), // of functions with an address
		{sub: api.ScaleSubresource, kinds: []*api.Kind{api.ReplicaSets}, verbs: []string{"get", "update", "patch"}},
		may([]string{"patch"}, api.Pods), // which instances go first
		recording,
	},
	"system:workflow-controller": {
		may(reading, api.Workflows, api.WorkflowRuns, api.Functions),
		mayBelow("status", changing, api.Workflows, api.WorkflowRuns),
		may([]string{"create", "delete"}, api.WorkflowRuns), // those that a change of a workflow starts; old ones go
		mayBelow(minik8s.FunctionCallSubresource, []string{"create"}, api.Functions),
		may([]string{"create", "get", "list"}, api.WorkflowSteps),
	},
	"system:podautoscaler-controller": {
		may(reading, api.HorizontalPodAutoscalers, api.Pods, api.Nodes),
		mayBelow("status", changing, api.HorizontalPodAutoscalers), // and the annotation with the sum
		{sub: api.ScaleSubresource, verbs: []string{"get", "update"}},
		measured, {verbs: []string{"get", "list"}, groups: []string{"metrics.k8s.io"}},
		recording,
	},
	"system:loadbalancer-controller": {
		may(reading, api.Services, api.Nodes, api.EndpointSlices),
		may([]string{"update"}, api.Services), // so that one gets an address
		mayBelow("status", changing, api.Services),
		recording,
	},
	"system:kubernetes-service": { // of default/kubernetes
		may([]string{"get", "list", "watch", "create"}, api.Services),
		may([]string{"get", "list", "watch", "create", "update", "delete"}, api.EndpointSlices, api.Endpoints),
		may(reading, api.Nodes),
	},
	"system:servicecidr-controller": {
		may(reading, api.ServiceCIDRs, api.Services, api.DNSes, api.IPAddresses),
		may([]string{"update"}, api.ServiceCIDRs), // the finalizer
		mayBelow("status", changing, api.ServiceCIDRs),
	},
	"system:gc-controller": {{verbs: []string{"get", "list", "watch", "patch", "delete"}}}, // ownerReferences and finalizers
	"system:podgc-controller": {
		may(reading, api.Pods, api.Nodes),
		may([]string{"delete"}, api.Pods),
		mayBelow("status", changing, api.Pods), // Failed, for pods of nodes that were removed
	},
	"system:tainteviction-controller": {
		may([]string{"get", "list", "watch", "delete"}, api.Pods),
		mayBelow("status", changing, api.Pods), // the DisruptionTarget condition
		may(reading, api.Nodes),
		recording,
	},
	"system:certificates-controller": {
		may([]string{"get", "list", "watch", "delete"}, api.CertificateSigningRequests),
		mayBelow(api.ApprovalSubresource, []string{"update"}, api.CertificateSigningRequests),
		mayBelow("status", []string{"update"}, api.CertificateSigningRequests),
		may(reading, api.Nodes), // whose each name is, and the addresses that a serving certificate may have
	},
	"system:apiservice-controller": {
		may([]string{"get", "list", "watch", "create", "delete"}, api.APIServices), // those of what is served here
		mayBelow("status", []string{"update"}, api.APIServices),                    // whether they are available
		may(reading, api.Services, api.EndpointSlices),
	},
	"system:clustertrust-controller": {
		may([]string{"get", "list", "watch", "create", "update"}, api.ConfigMaps), // extension-apiserver-authentication
	},
	"system:token-cleaner": {may([]string{"list", "watch", "delete"}, api.Secrets)},
	"system:event-expiry":  {may([]string{"list", "watch", "delete"}, api.Events)},
	Scraper:                scraping,
}
