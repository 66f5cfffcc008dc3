package api

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// APIServices say who serves a version of an API group: this cluster itself, or a Service.
var APIServices = &Kind{
	Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Plural: "apiservices", Singular: "apiservice",
	Categories:   []string{"api-extensions"},
	Subresources: []Subresource{status},
	New:          func() Object { return &apiregistrationv1.APIService{} },
	NewList:      func() runtime.Object { return &apiregistrationv1.APIServiceList{} },
}

// AutomanagedLabel, with Kubernetes' name, is on the APIServices that the cluster makes for what it serves itself, and
// keeps as they are.
const AutomanagedLabel = "kube-aggregator.kubernetes.io/automanaged"

// Automanaged is its value here, as Kubernetes has it for groups that may come and go.
const Automanaged = "true"

// APIServiceName is the name of the APIService of a group and version.
func APIServiceName(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// priorities are those of groups and versions, Kubernetes' own: the first is the group's.
var priorities = map[schema.GroupVersion][2]int32{
	{Group: "", Version: "v1"}: {18000, 1}, {Group: "apps", Version: "v1"}: {17800, 15},
	{Group: "events.k8s.io", Version: "v1"}: {17750, 15}, {Group: "authentication.k8s.io", Version: "v1"}: {17700, 15},
	{Group: "authorization.k8s.io", Version: "v1"}: {17600, 15}, {Group: "autoscaling", Version: "v1"}: {17500, 15},
	{Group: "autoscaling", Version: "v2"}: {17500, 30}, {Group: "batch", Version: "v1"}: {17400, 15},
	{Group: "certificates.k8s.io", Version: "v1"}: {17300, 15}, {Group: "networking.k8s.io", Version: "v1"}: {17200, 15},
	{Group: "policy", Version: "v1"}: {17100, 15}, {Group: "rbac.authorization.k8s.io", Version: "v1"}: {17000, 15},
	{Group: "storage.k8s.io", Version: "v1"}: {16800, 15}, {Group: "admissionregistration.k8s.io", Version: "v1"}: {16700, 15},
	{Group: "apiextensions.k8s.io", Version: "v1"}: {16700, 15}, {Group: "scheduling.k8s.io", Version: "v1"}: {16600, 15},
	{Group: "coordination.k8s.io", Version: "v1"}: {16500, 15}, {Group: "node.k8s.io", Version: "v1"}: {16300, 15},
	{Group: "discovery.k8s.io", Version: "v1"}: {16200, 15}, {Group: "apiregistration.k8s.io", Version: "v1"}: {18000, 15},
}

// LocalAPIService is the APIService of a group and version that the cluster serves itself.
func LocalAPIService(gv schema.GroupVersion) *apiregistrationv1.APIService {
	a := &apiregistrationv1.APIService{Spec: apiregistrationv1.APIServiceSpec{Group: gv.Group, Version: gv.Version,
		GroupPriorityMinimum: 1000, VersionPriority: 100}}
	a.Name, a.Labels = APIServiceName(gv), map[string]string{AutomanagedLabel: Automanaged}
	if p, ok := priorities[gv]; ok {
		a.Spec.GroupPriorityMinimum, a.Spec.VersionPriority = p[0], p[1]
	}
	return a
}

// BuiltinVersion reports whether kinds that are compiled in are of a group and version, which therefore no Service can
// serve.
func BuiltinVersion(gv schema.GroupVersion) bool {
	return slices.ContainsFunc(Builtin(), func(k *Kind) bool { return k.Group == gv.Group && k.Version == gv.Version })
}
