package table

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"minik8s/internal/api"
)

// Layout chooses the columns.
type Layout string

// The layouts: Kubernetes', and those of the two seed systems, which exist for pods, nodes, replica sets, services, DNS objects, GPU jobs
// and autoscalers.
const (
	Default Layout = ""
	// Extended also shows UIDs, ports, requests for CPU and memory, and errors.
	Extended Layout = "x"
	// Compact shows names, UIDs, nodes, states and addresses.
	Compact Layout = "a"
)

// none is how Kubernetes shows a missing name or address.
const none = "<none>"

// layout has the columns of a kind and makes the cells of an object.
type layout struct {
	columns []metav1.TableColumnDefinition
	row     func(obj api.Object, now time.Time) []any
}

// layoutOf returns the layout of a kind. A kind without its own layout shows name and age. A kind without columns for a
// seed system shows Kubernetes' columns.
func layoutOf(kind *api.Kind, l Layout) layout {
	if own := ownLayout(kind, l); own.row != nil {
		return own
	}
	return layout{plainColumns, plainRow}
}

// Has reports whether a kind has columns of its own.
func Has(kind *api.Kind) bool { return ownLayout(kind, Default).row != nil }

func ownLayout(kind *api.Kind, l Layout) layout {
	switch {
	case kind == api.Pods && l == Extended:
		return layout{podColumnsExtended(), typed(podRowExtended)}
	case kind == api.Pods && l == Compact:
		return layout{podColumnsCompact(), typed(podRowCompact)}
	case kind == api.Nodes && l == Extended:
		return layout{nodeColumnsExtended(), typed(nodeRowExtended)}
	case kind == api.Nodes && l == Compact:
		return layout{nodeColumnsCompact(), typed(nodeRowCompact)}
	case kind == api.ReplicaSets && l == Extended:
		return layout{replicaSetColumnsExtended(), typed(replicaSetRowExtended)}
	case kind == api.ReplicaSets && l == Compact:
		return layout{replicaSetColumnsCompact(), typed(replicaSetRowCompact)}
	case kind == api.Services && l == Extended:
		return layout{serviceColumnsExtended, typed(serviceRowExtended)}
	case kind == api.Services && l == Compact:
		return layout{serviceColumnsCompact, typed(serviceRowCompact)}
	case kind == api.DNSes && l == Extended:
		return layout{dnsColumnsExtended, typed(dnsRowExtended)}
	case kind == api.DNSes && l == Compact:
		return layout{dnsColumnsCompact, typed(dnsRowCompact)}
	case kind == api.GpuJobs && l == Extended:
		return layout{gpuJobColumnsExtended, typed(gpuJobRowExtended)}
	case kind == api.GpuJobs && l == Compact:
		return layout{gpuJobColumnsCompact, typed(gpuJobRowCompact)}
	case kind == api.HorizontalPodAutoscalers && l == Extended:
		return layout{autoscalerColumnsExtended, typed(autoscalerRowExtended)}
	case kind == api.HorizontalPodAutoscalers && l == Compact:
		return layout{autoscalerColumnsCompact, typed(autoscalerRowCompact)}
	}
	switch kind {
	case api.Services:
		return layout{serviceColumns, typed(serviceRow)}
	case api.DNSes:
		return layout{dnsColumns, typed(dnsRow)}
	case api.Functions:
		return layout{functionColumns, typed(functionRow)}
	case api.FunctionCalls:
		return layout{functionCallColumns, typed(functionCallRow)}
	case api.Workflows:
		return layout{workflowColumns, typed(workflowRow)}
	case api.WorkflowRuns:
		return layout{workflowRunColumns, typed(workflowRunRow)}
	case api.WorkflowSteps:
		return layout{workflowStepColumns, typed(workflowStepRow)}
	case api.GpuJobs:
		return layout{gpuJobColumns, typed(gpuJobRow)}
	case api.SlurmClusters:
		return layout{slurmClusterColumns, typed(slurmClusterRow)}
	case api.Ingresses:
		return layout{ingressColumns, typed(ingressRow)}
	case api.IngressClasses:
		return layout{ingressClassColumns, typed(ingressClassRow)}
	case api.ServiceCIDRs:
		return layout{serviceCIDRColumns, typed(serviceCIDRRow)}
	case api.IPAddresses:
		return layout{ipAddressColumns, typed(ipAddressRow)}
	case api.NetworkPolicies:
		return layout{networkPolicyColumns, typed(networkPolicyRow)}
	case api.Endpoints:
		return layout{endpointsColumns, typed(endpointsRow)}
	case api.EndpointSlices:
		return layout{endpointSliceColumns, typed(endpointSliceRow)}
	case api.Pods:
		return layout{podColumns, typed(podRow)}
	case api.ReplicationControllers:
		return layout{replicaSetColumns, typed(replicationControllerRow)}
	case api.PodTemplates:
		return layout{podTemplateColumns, typed(podTemplateRow)}
	case api.Nodes:
		return layout{nodeColumns, typed(nodeRow)}
	case api.Namespaces:
		return layout{namespaceColumns, typed(namespaceRow)}
	case api.ConfigMaps:
		return layout{configMapColumns, typed(configMapRow)}
	case api.Secrets:
		return layout{secretColumns, typed(secretRow)}
	case api.Events:
		return layout{eventColumns, typed(eventRow)}
	case api.ServiceAccounts:
		return layout{serviceAccountColumns, typed(serviceAccountRow)}
	case api.Leases:
		return layout{leaseColumns, typed(leaseRow)}
	case api.CertificateSigningRequests:
		return layout{csrColumns, typed(csrRow)}
	case api.PriorityClasses:
		return layout{priorityClassColumns, typed(priorityClassRow)}
	case api.ClusterConfigs:
		return layout{clusterConfigColumns, typed(clusterConfigRow)}
	case api.Peers:
		return layout{peerColumns, typed(peerRow)}
	case api.PodAddresses:
		return layout{podAddressColumns, typed(podAddressRow)}
	case api.ReplicaSets:
		return layout{replicaSetColumns, typed(replicaSetRow)}
	case api.Deployments:
		return layout{deploymentColumns, typed(deploymentRow)}
	case api.DaemonSets:
		return layout{daemonSetColumns, typed(daemonSetRow)}
	case api.ControllerRevisions:
		return layout{revisionColumns, typed(revisionRow)}
	case api.APIServices:
		return layout{apiServiceColumns, typed(apiServiceRow)}
	case api.Jobs:
		return layout{jobColumns, typed(jobRow)}
	case api.HorizontalPodAutoscalers:
		return layout{autoscalerColumns, typed(autoscalerRow)}
	}
	return layout{}
}

// Columns returns the columns of a kind. Those with Priority 1 are shown only in wide output.
func Columns(kind *api.Kind, l Layout) []metav1.TableColumnDefinition {
	return layoutOf(kind, l).columns
}

// Row returns the cells of one object, as many as there are columns.
func Row(kind *api.Kind, obj api.Object, l Layout, now time.Time) []any {
	lay := layoutOf(kind, l)
	cells := lay.row(obj, now)
	for len(cells) < len(lay.columns) { // an object of another type
		cells = append(cells, "")
	}
	return cells[:len(lay.columns)]
}

// Build makes a table of objects of one kind. The caller sets the rows' Object, since it knows how much of it the
// client wants.
func Build(kind *api.Kind, objs []api.Object, l Layout, now time.Time) *metav1.Table {
	t := &metav1.Table{
		TypeMeta:          metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
		ColumnDefinitions: Columns(kind, l),
		Rows:              make([]metav1.TableRow, 0, len(objs)),
	}
	for _, obj := range objs {
		t.Rows = append(t.Rows, metav1.TableRow{Cells: Row(kind, obj, l, now), Conditions: Conditions(obj)})
	}
	return t
}

// Conditions marks rows that may be greyed out: those of pods that have ended.
func Conditions(obj api.Object) []metav1.TableRowCondition {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return nil
	}
	return []metav1.TableRowCondition{{
		Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(pod.Status.Phase),
		Message: "The pod has ended.",
	}}
}

// typed adapts a row function for one type. For an object of any other type, only the name is shown.
func typed[T api.Object](row func(T, time.Time) []any) func(api.Object, time.Time) []any {
	return func(obj api.Object, now time.Time) []any {
		if t, ok := obj.(T); ok {
			return row(t, now)
		}
		return plainRow(obj, now)[:1]
	}
}

var plainColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func plainRow(obj api.Object, now time.Time) []any {
	return []any{obj.GetName(), since(obj.GetCreationTimestamp().Time, now)}
}

// since returns the time from t to now in Kubernetes' short form: "3m5s".
func since(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}

// or returns s, or other if s is empty.
func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
