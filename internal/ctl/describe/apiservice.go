package describe

import (
	"fmt"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/ctl/session"
)

func writeAPIService(s *session.Session, out *sheet, a *apiregistrationv1.APIService) {
	out.field("Group", a.Spec.Group)
	out.field("Version", a.Spec.Version)
	out.field("Group Priority", fmt.Sprint(a.Spec.GroupPriorityMinimum))
	out.field("Version Priority", fmt.Sprint(a.Spec.VersionPriority))
	service := "none: the cluster serves it itself"
	if at := a.Spec.Service; at != nil {
		service = at.Namespace + "/" + at.Name
		if at.Port != nil {
			service += fmt.Sprintf(", port %d", *at.Port)
		}
	}
	out.field("Service", service)
	switch {
	case a.Spec.Service == nil:
	case a.Spec.InsecureSkipTLSVerify:
		out.field("Certificate", "not verified (insecureSkipTLSVerify)")
	case len(a.Spec.CABundle) > 0:
		out.field("Certificate", fmt.Sprintf("verified against caBundle, %d bytes", len(a.Spec.CABundle)))
	default:
		out.field("Certificate", "verified against the certificates of the machine")
	}
	out.line("Conditions:")
	for _, c := range a.Status.Conditions {
		out.line("  %s: %s since %s", c.Type, c.Status, s.When(c.LastTransitionTime))
		out.line("    %s: %s", c.Reason, c.Message)
	}
	if len(a.Status.Conditions) == 0 {
		out.line("  <none>")
	}
}
