package defaults

import apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

// APIService has a Service be asked at port 443, unless it is set otherwise.
func APIService(a *apiregistrationv1.APIService) {
	if s := a.Spec.Service; s != nil && s.Port == nil {
		whole := *s
		whole.Port = new(int32(443))
		a.Spec.Service = &whole
	}
}
