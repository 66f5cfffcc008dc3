package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"minik8s/internal/api/minik8s"
)

var namespaceColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Status", Type: "string", Description: "The status of the namespace."},
	{Name: "Age", Type: "string", Description: "The time since the namespace was created."},
}

func namespaceRow(ns *corev1.Namespace, now time.Time) []any {
	return []any{ns.Name, string(ns.Status.Phase), since(ns.CreationTimestamp.Time, now)}
}

var configMapColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Data", Type: "integer", Description: "How many keys there are."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func configMapRow(c *corev1.ConfigMap, now time.Time) []any {
	return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), since(c.CreationTimestamp.Time, now)}
}

var secretColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Type", Type: "string", Description: "What the secret is for."},
	{Name: "Data", Type: "integer", Description: "How many keys there are."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func secretRow(s *corev1.Secret, now time.Time) []any {
	return []any{s.Name, string(s.Type), int64(len(s.Data)), since(s.CreationTimestamp.Time, now)}
}

var serviceAccountColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Secrets", Type: "integer", Description: "How many secrets pods of this account may use."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func serviceAccountRow(sa *corev1.ServiceAccount, now time.Time) []any {
	return []any{sa.Name, int64(len(sa.Secrets)), since(sa.CreationTimestamp.Time, now)}
}

var priorityClassColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "What pods call the class."},
	{Name: "Value", Type: "integer", Description: "The priority of pods of this class: the higher, the sooner they are scheduled."},
	{Name: "Global-Default", Type: "boolean", Description: "Whether pods that name no class are of this one."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
	{Name: "PreemptionPolicy", Type: "string", Priority: 1, Description: "Whether pods of this class may take others' room."},
}

func priorityClassRow(pc *schedulingv1.PriorityClass, now time.Time) []any {
	policy := ""
	if pc.PreemptionPolicy != nil {
		policy = string(*pc.PreemptionPolicy)
	}
	return []any{pc.Name, int64(pc.Value), pc.GlobalDefault, since(pc.CreationTimestamp.Time, now), policy}
}

var leaseColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Holder", Type: "string", Description: "Who holds the lease."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func leaseRow(l *coordinationv1.Lease, now time.Time) []any {
	holder := ""
	if l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	return []any{l.Name, holder, since(l.CreationTimestamp.Time, now)}
}

var csrColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
	{Name: "SignerName", Type: "string", Description: "The signer that is asked."},
	{Name: "Requestor", Type: "string", Description: "Who asks."},
	{Name: "RequestedDuration", Type: "string", Description: "How long the certificate shall last."},
	{Name: "Condition", Type: "string", Description: "What was decided, and whether the certificate is issued."},
}

func csrRow(c *certificatesv1.CertificateSigningRequest, now time.Time) []any {
	lasts := "<none>"
	if s := c.Spec.ExpirationSeconds; s != nil {
		lasts = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	has := func(t certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(c.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == t })
	}
	var state []string
	switch {
	case has(certificatesv1.CertificateDenied):
		state = append(state, "Denied")
	case has(certificatesv1.CertificateApproved):
		state = append(state, "Approved")
	default:
		state = append(state, "Pending")
	}
	if has(certificatesv1.CertificateFailed) {
		state = append(state, "Failed")
	}
	if len(c.Status.Certificate) > 0 {
		state = append(state, "Issued")
	}
	return []any{c.Name, since(c.CreationTimestamp.Time, now), c.Spec.SignerName, c.Spec.Username, lasts, strings.Join(state, ",")}
}

var clusterConfigColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "There is one, named cluster."},
	{Name: "Scheduler", Type: "string", Description: "How the scheduler chooses among the nodes that fit a pod."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func clusterConfigRow(c *minik8s.ClusterConfig, now time.Time) []any {
	return []any{c.Name, c.Spec.Scheduler.StrategyOr(), since(c.CreationTimestamp.Time, now)}
}

var peerColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The name of the node."},
	{Name: "Address", Type: "string", Description: "Where the machine is."},
	{Name: "Pods", Type: "string", Description: "The range of its pods' addresses."},
	{Name: "API", Type: "string", Description: "Where it serves the API, if it is a master."},
	{Name: "Age", Type: "string", Description: "The time since the node was created."},
}

func peerRow(p *minik8s.Peer, now time.Time) []any {
	return []any{p.Name, or(strings.Join(p.Spec.Addresses, ","), none), or(strings.Join(p.Spec.PodCIDRs, ","), none), or(p.Spec.API, none),
		since(p.CreationTimestamp.Time, now)}
}

var podAddressColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The name of the pod."},
	{Name: "Address", Type: "string", Description: "Where the pod is reached."},
	{Name: "Node", Type: "string", Description: "The node that it runs on."},
	{Name: "Ports", Type: "string", Description: "The ports that have a name."},
	{Name: "Age", Type: "string", Description: "The time since the pod was created."},
}

func podAddressRow(p *minik8s.PodAddress, now time.Time) []any {
	var ports []string
	for _, n := range p.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%s:%d/%s", n.Name, n.Port, n.Protocol))
	}
	return []any{p.Name, or(strings.Join(p.Spec.Addresses, ","), none), or(p.Spec.NodeName, none), or(strings.Join(ports, ","), none),
		since(p.CreationTimestamp.Time, now)}
}

var eventColumns = []metav1.TableColumnDefinition{
	{Name: "Last Seen", Type: "string", Description: "The time since it last happened."},
	{Name: "Type", Type: "string", Description: "Normal or Warning."},
	{Name: "Reason", Type: "string", Description: "Why it happened, in a word."},
	{Name: "Object", Type: "string", Description: "What it happened to."},
	{Name: "Subobject", Type: "string", Priority: 1, Description: "The part of the object."},
	{Name: "Source", Type: "string", Priority: 1, Description: "Who reports it."},
	{Name: "Message", Type: "string", Description: "What happened."},
	{Name: "First Seen", Type: "string", Priority: 1, Description: "The time since it first happened."},
	{Name: "Count", Type: "integer", Priority: 1, Description: "How often it happened."},
	{Name: "Name", Type: "string", Format: "name", Priority: 1, Description: "Name must be unique within a namespace."},
}

func eventRow(e *corev1.Event, now time.Time) []any {
	first := e.FirstTimestamp.Time
	if first.IsZero() {
		first = e.EventTime.Time
	}
	last, count := e.LastTimestamp.Time, int64(e.Count)
	if last.IsZero() {
		last = first
	}
	if e.Series != nil {
		last, count = e.Series.LastObservedTime.Time, int64(e.Series.Count)
	} else if count == 0 {
		count = 1
	}
	about := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		about += "/" + e.InvolvedObject.Name
	}
	source, host := or(e.Source.Component, e.ReportingController), or(e.Source.Host, e.ReportingInstance)
	if host != "" {
		source += ", " + host
	}
	return []any{
		since(last, now), e.Type, e.Reason, about, e.InvolvedObject.FieldPath, source, strings.TrimSpace(e.Message),
		since(first, now), count, e.Name,
	}
}
