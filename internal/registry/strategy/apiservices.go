package strategy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api/defaults"
	"minik8s/internal/api/validation"
	"minik8s/internal/clock"
	"minik8s/internal/registry"
)

// apiServiceStrategy: what names no Service is served by the cluster itself, and is available from the start.
func apiServiceStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default: onOne(defaults.APIService),
		PrepareCreate: onOne(func(a *apiregistrationv1.APIService) {
			if a.Spec.Service == nil {
				a.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue,
					LastTransitionTime: metav1.NewTime(clock.Now()), Reason: "Local", Message: "Local APIServices are always available"}}
			}
		}),
		Validate:       checkOne(validation.APIService),
		ValidateStatus: checkStep(validation.APIServiceStatusUpdate),
		CopyStatus:     onStep(func(dst, src *apiregistrationv1.APIService) { dst.Status = src.Status }),
	}
}
