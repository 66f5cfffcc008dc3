package table

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var apiServiceColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The version and the group."},
	{Name: "Service", Type: "string", Description: "The Service that serves it; Local: the cluster itself."},
	{Name: "Available", Type: "string", Description: "Whether it can be asked, and if not, why."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func apiServiceRow(a *apiregistrationv1.APIService, now time.Time) []any {
	service, available := "Local", "Unknown"
	if s := a.Spec.Service; s != nil {
		service = s.Namespace + "/" + s.Name
	}
	for _, c := range a.Status.Conditions {
		if c.Type != apiregistrationv1.Available {
			continue
		}
		if available = string(c.Status); c.Status != apiregistrationv1.ConditionTrue {
			available = fmt.Sprintf("%s (%s)", c.Status, c.Reason)
		}
	}
	return []any{a.Name, service, available, since(a.CreationTimestamp.Time, now)}
}
