package api

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api/minik8s"
)

// Object is any object that the API stores: it has a kind and metadata.
type Object interface {
	runtime.Object
	metav1.Object
}

// HasKind is an object of a kind that is not compiled in. Its Go type does not tell its kind, so it says so itself.
type HasKind interface{ APIKind() *Kind }

// Kind is one row of the table of kinds.
type Kind struct {
	Group, Version, Kind string
	Plural, Singular     string
	ShortNames           []string
	// Categories are words that name several kinds at once: "all".
	Categories []string
	Namespaced bool
	// Subresources are the paths below an object: "status", "log". Routes, discovery and OpenAPI follow them.
	Subresources []Subresource
	// Verbs are the operations that the kind supports; nil: all. Routes, discovery and OpenAPI follow them.
	Verbs []string
	// Asked: objects of the kind are questions. They are answered and never stored.
	Asked bool
	// View, if set, makes this kind another form of a stored kind.
	View *View
	// AsBytes: there are many objects of the kind, and they are read seldom, so the cache keeps no decoded ones.
	AsBytes bool
	// Confidential: no part of an object of the kind may be kept for the sake of others.
	Confidential bool
	// Implied are objects of the kind that others imply; nil: all of them are stored.
	Implied *Implied
	// WriteOnly are paths of fields that can be written and never read: what is in them is kept by another object. See
	// Strategy.Split of package registry.
	WriteOnly [][]string
	// Aliases are the names of the kind on the command lines of the two seed systems, if they differ from plural,
	// singular and short names.
	Aliases []string

	New     func() Object
	NewList func() runtime.Object
}

// Implied are objects that exist because an object of another kind says so: they come, change and go with it, are read
// like those that are stored, and cannot be written. Their resourceVersion is that of a write of what implies them.
type Implied struct {
	By []*Kind
	// Of returns the object that an object of one of these kinds implies; nil: none. It depends on nothing else. No two
	// objects imply one of the same name, and none of that name is stored: admission sees to it.
	Of func(Object) Object
}

// Base is the kind that is stored: of a view the kind that it shows, of all others the kind itself.
func (k *Kind) Base() *Kind {
	if k.View != nil {
		return k.View.Of
	}
	return k
}

// Stored reports whether the store holds objects of the kind.
func (k *Kind) Stored() bool { return k.View == nil && !k.Asked }

// Subresource is a path below an object. What a write there does is said in package strategy.
type Subresource struct {
	Name string // "log"
	// Kind is the kind of its body: "Binding"; empty: the parent's. Group and Version are those of that body, where they
	// differ from the parent's.
	Kind, Group, Version string
	Verbs                []string
	// Connects: it leads to a container or a node, not to an object. An upgraded connection is asked for by GET and by POST, and
	// needs the right to create.
	Connects bool
	// Path: a path of any length may follow the name.
	Path bool
	// Absent: it is read also where there is no object of that name.
	Absent bool
}

// Body returns the kind of the body of one of the kind's subresources.
func (k *Kind) Body(sub *Subresource) schema.GroupVersionKind {
	gvk := k.GVK()
	if sub.Kind != "" {
		gvk.Kind = sub.Kind
	}
	if sub.Version != "" {
		gvk.Group, gvk.Version = sub.Group, sub.Version
	}
	return gvk
}

var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// Operations returns the verbs that can be used on objects of the kind. Callers must not change the slice.
func (k *Kind) Operations() []string {
	if k.Verbs != nil {
		return k.Verbs
	}
	return allVerbs
}

// Allows reports whether a verb can be used on objects of the kind.
func (k *Kind) Allows(verb string) bool { return slices.Contains(k.Operations(), verb) }

// HasStatus reports whether the kind has the subresource status: a write to the object does not change the status, and
// a write to .../status changes nothing else.
func (k *Kind) HasStatus() bool { return k.Subresource(StatusSubresource) != nil }

// Subresource returns the subresource of that name; nil if the kind has none.
func (k *Kind) Subresource(name string) *Subresource {
	for i := range k.Subresources {
		if k.Subresources[i].Name == name {
			return &k.Subresources[i]
		}
	}
	return nil
}

// GVK is the kind's group, version and kind.
func (k *Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// GVR is the kind's group, version and resource (its plural).
func (k *Kind) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Plural}
}

// GR is GVR without the version, as used in errors.
func (k *Kind) GR() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

// APIVersion is the value of the object's apiVersion field: "v1", "apps/v1".
func (k *Kind) APIVersion() string { return k.GVK().GroupVersion().String() }

// String is the kind's name in errors and logs: "pods", "leases.coordination.k8s.io".
func (k *Kind) String() string { return k.GR().String() }

// The kinds, with the names that code uses for them.
var (
	Namespaces = &Kind{
		Version: "v1", Kind: "Namespace", Plural: "namespaces", Singular: "namespace",
		ShortNames:   []string{"ns"},
		Subresources: []Subresource{{Name: "finalize", Verbs: []string{"update"}}, status},
		New:          func() Object { return &corev1.Namespace{} },
		NewList:      func() runtime.Object { return &corev1.NamespaceList{} },
	}
	Nodes = &Kind{
		Version: "v1", Kind: "Node", Plural: "nodes", Singular: "node",
		ShortNames:   []string{"no"},
		Subresources: []Subresource{proxyOf("NodeProxyOptions"), status},
		New:          func() Object { return &corev1.Node{} },
		NewList:      func() runtime.Object { return &corev1.NodeList{} },
	}
	Pods = &Kind{
		Version: "v1", Kind: "Pod", Plural: "pods", Singular: "pod",
		ShortNames: []string{"po"}, Categories: []string{"all"}, Namespaced: true,
		Subresources: []Subresource{
			{Name: "attach", Kind: "PodAttachOptions", Verbs: []string{"create", "get"}, Connects: true},
			{Name: "exec", Kind: "PodExecOptions", Verbs: []string{"create", "get"}, Connects: true},
			{Name: "portforward", Kind: "PodPortForwardOptions", Verbs: []string{"create", "get"}, Connects: true},
			{Name: "binding", Kind: "Binding", Verbs: []string{"create"}},
			{Name: EphemeralContainersSubresource, Verbs: []string{"get", "patch", "update"}},
			{Name: "eviction", Kind: "Eviction", Group: "policy", Version: "v1", Verbs: []string{"create"}},
			{Name: "log", Verbs: []string{"get"}, Connects: true},
			proxyOf("PodProxyOptions"),
			status,
		},
		New:     func() Object { return &corev1.Pod{} },
		NewList: func() runtime.Object { return &corev1.PodList{} },
	}
	Services = &Kind{
		Version: "v1", Kind: "Service", Plural: "services", Singular: "service",
		ShortNames: []string{"svc"}, Categories: []string{"all"}, Namespaced: true,
		Subresources: []Subresource{proxyOf("ServiceProxyOptions"), status},
		New:          func() Object { return &corev1.Service{} },
		NewList:      func() runtime.Object { return &corev1.ServiceList{} },
	}
	Endpoints = &Kind{
		Version: "v1", Kind: "Endpoints", Plural: "endpoints", Singular: "endpoints",
		ShortNames: []string{"ep"}, Namespaced: true,
		New:     func() Object { return &corev1.Endpoints{} },
		NewList: func() runtime.Object { return &corev1.EndpointsList{} },
	}
	EndpointSlices = &Kind{
		Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice", Plural: "endpointslices", Singular: "endpointslice",
		Namespaced: true,
		New:        func() Object { return &discoveryv1.EndpointSlice{} },
		NewList:    func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
	}
	ReplicationControllers = &Kind{
		Version: "v1", Kind: "ReplicationController", Plural: "replicationcontrollers", Singular: "replicationcontroller",
		ShortNames: []string{"rc"}, Categories: []string{"all"},
		Namespaced: true, Subresources: []Subresource{scale, status},
		New:     func() Object { return &corev1.ReplicationController{} },
		NewList: func() runtime.Object { return &corev1.ReplicationControllerList{} },
	}
	PodTemplates = &Kind{
		Version: "v1", Kind: "PodTemplate", Plural: "podtemplates", Singular: "podtemplate", Namespaced: true,
		New:     func() Object { return &corev1.PodTemplate{} },
		NewList: func() runtime.Object { return &corev1.PodTemplateList{} },
	}
	ConfigMaps = &Kind{
		Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Singular: "configmap",
		ShortNames: []string{"cm"}, Namespaced: true,
		New:     func() Object { return &corev1.ConfigMap{} },
		NewList: func() runtime.Object { return &corev1.ConfigMapList{} },
	}
	Secrets = &Kind{
		Version: "v1", Kind: "Secret", Plural: "secrets", Singular: "secret", Namespaced: true, Confidential: true,
		New:     func() Object { return &corev1.Secret{} },
		NewList: func() runtime.Object { return &corev1.SecretList{} },
	}
	Events = &Kind{
		Version: "v1", Kind: "Event", Plural: "events", Singular: "event",
		ShortNames: []string{"ev"}, Namespaced: true, AsBytes: true,
		New:     func() Object { return &corev1.Event{} },
		NewList: func() runtime.Object { return &corev1.EventList{} },
	}
	ServiceAccounts = &Kind{
		Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Singular: "serviceaccount",
		ShortNames: []string{"sa"}, Namespaced: true,
		Subresources: []Subresource{
			{Name: "token", Kind: "TokenRequest", Group: "authentication.k8s.io", Version: "v1", Verbs: []string{"create"}},
		},
		New:     func() Object { return &corev1.ServiceAccount{} },
		NewList: func() runtime.Object { return &corev1.ServiceAccountList{} },
	}
	Leases = &Kind{
		Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Singular: "lease",
		Namespaced: true,
		New:        func() Object { return &coordinationv1.Lease{} },
		NewList:    func() runtime.Object { return &coordinationv1.LeaseList{} },
	}
	CertificateSigningRequests = &Kind{
		Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest",
		Plural: "certificatesigningrequests", Singular: "certificatesigningrequest", ShortNames: []string{"csr"},
		Subresources: []Subresource{status, {Name: ApprovalSubresource, Kind: "CertificateSigningRequest", Verbs: []string{"get", "patch", "update"}}},
		New:          func() Object { return &certificatesv1.CertificateSigningRequest{} },
		NewList:      func() runtime.Object { return &certificatesv1.CertificateSigningRequestList{} },
	}
	Ingresses = &Kind{
		Group: "networking.k8s.io", Version: "v1", Kind: "Ingress", Plural: "ingresses", Singular: "ingress",
		ShortNames: []string{"ing"}, Namespaced: true,
		Subresources: []Subresource{status},
		New:          func() Object { return &networkingv1.Ingress{} },
		NewList:      func() runtime.Object { return &networkingv1.IngressList{} },
	}
	IngressClasses = &Kind{
		Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass", Plural: "ingressclasses", Singular: "ingressclass",
		New:     func() Object { return &networkingv1.IngressClass{} },
		NewList: func() runtime.Object { return &networkingv1.IngressClassList{} },
	}
	NetworkPolicies = &Kind{
		Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy", Plural: "networkpolicies", Singular: "networkpolicy",
		ShortNames: []string{"netpol"}, Namespaced: true,
		New:     func() Object { return &networkingv1.NetworkPolicy{} },
		NewList: func() runtime.Object { return &networkingv1.NetworkPolicyList{} },
	}
	ServiceCIDRs = &Kind{
		Group: "networking.k8s.io", Version: "v1", Kind: "ServiceCIDR", Plural: "servicecidrs", Singular: "servicecidr",
		Subresources: []Subresource{status},
		New:          func() Object { return &networkingv1.ServiceCIDR{} },
		NewList:      func() runtime.Object { return &networkingv1.ServiceCIDRList{} },
	}
	IPAddresses = &Kind{
		Group: "networking.k8s.io", Version: "v1", Kind: "IPAddress", Plural: "ipaddresses", Singular: "ipaddress",
		ShortNames: []string{"ip"}, AsBytes: true,
		New:     func() Object { return &networkingv1.IPAddress{} },
		NewList: func() runtime.Object { return &networkingv1.IPAddressList{} },
	}
	PriorityClasses = &Kind{
		Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass", Plural: "priorityclasses", Singular: "priorityclass",
		ShortNames: []string{"pc"},
		New:        func() Object { return &schedulingv1.PriorityClass{} },
		NewList:    func() runtime.Object { return &schedulingv1.PriorityClassList{} },
	}
	ClusterConfigs = &Kind{
		Group: "minik8s.io", Version: "v1", Kind: "ClusterConfig", Plural: "clusterconfigs", Singular: "clusterconfig",
		ShortNames: []string{"cfg"},
		New:        func() Object { return &minik8s.ClusterConfig{} },
		NewList:    func() runtime.Object { return &minik8s.ClusterConfigList{} },
	}
	DNSes = &Kind{
		Group: "minik8s.io", Version: "v1", Kind: "DNS", Plural: "dnses", Singular: "dns", Namespaced: true,
		Subresources: []Subresource{status},
		New:          func() Object { return &minik8s.DNS{} },
		NewList:      func() runtime.Object { return &minik8s.DNSList{} },
	}
	GpuJobs = &Kind{
		Group: "minik8s.io", Version: "v1", Kind: "GpuJob", Plural: "gpujobs", Singular: "gpujob",
		ShortNames: []string{"gpu"}, Aliases: []string{"gpus"}, Namespaced: true,
		Subresources: []Subresource{status,
			{Name: minik8s.GpuJobFilesSubresource, Verbs: []string{"get"}, Connects: true, Path: true},
			{Name: minik8s.GpuJobLogSubresource, Verbs: []string{"get"}, Connects: true},
			{Name: minik8s.GpuJobScriptSubresource, Verbs: []string{"get"}, Connects: true},
			{Name: minik8s.GpuJobSourcesSubresource, Verbs: []string{"update"}, Connects: true},
		},
		WriteOnly: [][]string{{"spec", "username"}, {"spec", "password"}},
		New:       func() Object { return &minik8s.GpuJob{} },
		NewList:   func() runtime.Object { return &minik8s.GpuJobList{} },
	}
	SlurmClusters = &Kind{
		Group: "minik8s.io", Version: "v1", Kind: "SlurmCluster", Plural: "slurmclusters", Singular: "slurmcluster",
		ShortNames: []string{"slurm"}, Namespaced: true,
		Subresources: []Subresource{status, {Name: minik8s.SlurmLoginSubresource, Verbs: []string{"create"}, Connects: true}},
		New:          func() Object { return &minik8s.SlurmCluster{} },
		NewList:      func() runtime.Object { return &minik8s.SlurmClusterList{} },
	}
	Functions = &Kind{
		Group: "minik8s.io", Version: "v1", Kind: "Function", Plural: "functions", Singular: "function",
		ShortNames: []string{"func", "fn"}, Aliases: []string{"funcs", "f"}, Namespaced: true,
		Subresources: []Subresource{status, {Name: minik8s.FunctionCallSubresource, Verbs: []string{"create"}, Connects: true},
			{Name: minik8s.FunctionLoadSubresource, Verbs: []string{"get"}, Connects: true},
			{Name: minik8s.FunctionCallsSubresource, Verbs: []string{"get"}, Connects: true}},
		New:     func() Object { return &minik8s.Function{} },
		NewList: func() runtime.Object { return &minik8s.FunctionList{} },
	}
	FunctionCalls = &Kind{
		Group: "minik8s.io", Version: "v1", Kind: "FunctionCall", Plural: "functioncalls", Singular: "functioncall",
		ShortNames: []string{"call"}, Aliases: []string{"calls"}, Namespaced: true, AsBytes: true,
		Subresources: []Subresource{{Name: minik8s.FunctionResultSubresource, Verbs: []string{"get", "update"}, Connects: true, Absent: true}, status},
		New:          func() Object { return &minik8s.FunctionCall{} },
		NewList:      func() runtime.Object { return &minik8s.FunctionCallList{} },
	}
	Workflows = &Kind{
		Group: "minik8s.io", Version: "v1", Kind: "Workflow", Plural: "workflows", Singular: "workflow",
		ShortNames: []string{"wf"}, Aliases: []string{"wfs"}, Namespaced: true,
		Subresources: []Subresource{status},
		New:          func() Object { return &minik8s.Workflow{} },
		NewList:      func() runtime.Object { return &minik8s.WorkflowList{} },
	}
	WorkflowRuns = &Kind{
		Group: "minik8s.io", Version: "v1", Kind: "WorkflowRun", Plural: "workflowruns", Singular: "workflowrun",
		ShortNames: []string{"wfr"}, Aliases: []string{"wfrs"}, Namespaced: true,
		Subresources: []Subresource{status},
		New:          func() Object { return &minik8s.WorkflowRun{} },
		NewList:      func() runtime.Object { return &minik8s.WorkflowRunList{} },
	}
	WorkflowSteps = &Kind{
		Group: "minik8s.io", Version: "v1", Kind: "WorkflowStep", Plural: "workflowsteps", Singular: "workflowstep",
		Namespaced: true, AsBytes: true,
		New:     func() Object { return &minik8s.WorkflowStep{} },
		NewList: func() runtime.Object { return &minik8s.WorkflowStepList{} },
	}
	ReplicaSets = &Kind{
		Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Singular: "replicaset",
		ShortNames: []string{"rs"}, Aliases: []string{"rss"}, Categories: []string{"all"},
		Namespaced: true, Subresources: []Subresource{scale, status},
		New:     func() Object { return &appsv1.ReplicaSet{} },
		NewList: func() runtime.Object { return &appsv1.ReplicaSetList{} },
	}
	Deployments = &Kind{
		Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Singular: "deployment",
		ShortNames: []string{"deploy"}, Categories: []string{"all"},
		Namespaced: true, Subresources: []Subresource{scale, status},
		New:     func() Object { return &appsv1.Deployment{} },
		NewList: func() runtime.Object { return &appsv1.DeploymentList{} },
	}
	DaemonSets = &Kind{
		Group: "apps", Version: "v1", Kind: "DaemonSet", Plural: "daemonsets", Singular: "daemonset",
		ShortNames: []string{"ds"}, Categories: []string{"all"}, Namespaced: true,
		Subresources: []Subresource{status},
		New:          func() Object { return &appsv1.DaemonSet{} },
		NewList:      func() runtime.Object { return &appsv1.DaemonSetList{} },
	}
	ControllerRevisions = &Kind{
		Group: "apps", Version: "v1", Kind: "ControllerRevision", Plural: "controllerrevisions", Singular: "controllerrevision",
		Namespaced: true,
		New:        func() Object { return &appsv1.ControllerRevision{} },
		NewList:    func() runtime.Object { return &appsv1.ControllerRevisionList{} },
	}
	Jobs = &Kind{
		Group: "batch", Version: "v1", Kind: "Job", Plural: "jobs", Singular: "job", Aliases: []string{"j"},
		Categories: []string{"all"}, Namespaced: true,
		Subresources: []Subresource{status},
		New:          func() Object { return &batchv1.Job{} },
		NewList:      func() runtime.Object { return &batchv1.JobList{} },
	}
	HorizontalPodAutoscalers = &Kind{
		Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler",
		ShortNames: []string{"hpa"}, Aliases: []string{"hpas"}, Categories: []string{"all"}, Namespaced: true,
		Subresources: []Subresource{status},
		New:          func() Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
		NewList:      func() runtime.Object { return &autoscalingv2.HorizontalPodAutoscalerList{} },
	}
)

// EphemeralContainersSubresource is the path below a pod for adding containers to it while it runs.
const EphemeralContainersSubresource = "ephemeralcontainers"

// ApprovalSubresource is the path below a certificate signing request for approving or denying it.
const ApprovalSubresource = "approval"

// StatusSubresource is the path below every kind that has a status.
const StatusSubresource = "status"

// ScaleSubresource is the path below every kind that has a number of replicas.
const ScaleSubresource = "scale"

var status = Subresource{Name: StatusSubresource, Verbs: []string{"get", "patch", "update"}}

var scale = Subresource{Name: ScaleSubresource, Kind: "Scale", Group: "autoscaling", Version: "v1",
	Verbs: []string{"get", "patch", "update"}}

// proxyOf is the subresource that forwards any HTTP request to what the object stands for.
func proxyOf(options string) Subresource {
	return Subresource{Name: "proxy", Kind: options, Verbs: []string{"create", "delete", "get", "patch", "update"}, Connects: true, Path: true}
}

// Kinds lists the stored kinds that are compiled in, in the order of discovery. Who follows what a cluster serves asks
// its Table, or discovery; the list itself is right for what must be known without a cluster (help, the Go types of
// clients), and for the dialects of the two seed systems, which have no other kinds.
var Kinds = []*Kind{
	Namespaces, Nodes, Pods, Services, Endpoints, ReplicationControllers, PodTemplates, ConfigMaps, Secrets, Events, ServiceAccounts,
	EndpointSlices, Leases, CertificateSigningRequests, Ingresses, IngressClasses, NetworkPolicies, ServiceCIDRs, IPAddresses, PriorityClasses,
	ClusterConfigs, DNSes, GpuJobs, SlurmClusters, Functions, FunctionCalls, Workflows, WorkflowRuns, WorkflowSteps,
	ReplicaSets, Deployments, DaemonSets, ControllerRevisions, Jobs, HorizontalPodAutoscalers,
	APIServices,
}

func init() { // what they are implied by is decided by the table of kinds
	IPAddresses.Implied = &Implied{By: []*Kind{Services, DNSes}, Of: impliedAddress}
}

// Builtin returns all kinds that are compiled in: stored kinds, other forms of them, and questions.
func Builtin() []*Kind { return slices.Concat(Kinds, Views, Questions) }

// ByGVK returns the compiled-in kind with this group, version and kind; nil if there is none.
func ByGVK(gvk schema.GroupVersionKind) *Kind { return byGVK(Kinds, gvk) }

// ByWord returns the compiled-in kind that a person means by word: its plural, singular, kind, short name or alias from a seed
// system, in upper or lower case, or plural.group. nil if there is none.
func ByWord(word string) *Kind { return Find(Kinds, word) }

// Find is ByWord among given kinds.
func Find(kinds []*Kind, word string) *Kind {
	w := strings.ToLower(word)
	for _, k := range kinds {
		if w == k.Plural || w == k.Singular || w == strings.ToLower(k.Kind) || w == k.GR().String() {
			return k
		}
		for _, words := range [][]string{k.ShortNames, k.Aliases} {
			for _, s := range words {
				if w == s {
					return k
				}
			}
		}
	}
	return nil
}

// KindOf returns the kind of a decoded object, which may be a view: from HasKind, or else from its Go type; nil if we do not
// serve it.
func KindOf(obj runtime.Object) *Kind {
	if o, ok := obj.(HasKind); ok {
		return o.APIKind()
	}
	gvks, _, err := Scheme.ObjectKinds(obj)
	if err != nil || len(gvks) == 0 {
		return nil
	}
	if kind := ByGVK(gvks[0]); kind != nil {
		return kind
	}
	return byGVK(Views, gvks[0])
}
