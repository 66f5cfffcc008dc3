package strategy

import (
	"errors"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/validation"
	"minik8s/internal/clock"
	"minik8s/internal/membership"
	"minik8s/internal/registry"
	"minik8s/internal/registry/authorization"
)

// csrStrategy: who asks is noted by the server; a decision is made by the subresource approval, the certificate is
// issued by the subresource status, and the request itself never changes.
func csrStrategy() *registry.Strategy {
	return &registry.Strategy{
		Author: func(obj, old api.Object, by registry.User) {
			if old != nil {
				return
			}
			spec := &obj.(*certificatesv1.CertificateSigningRequest).Spec
			spec.Username, spec.UID, spec.Groups, spec.Extra = by.Name, by.UID, slices.Clone(by.Groups), nil
			for k, v := range by.Extra {
				if spec.Extra == nil {
					spec.Extra = map[string]certificatesv1.ExtraValue{}
				}
				spec.Extra[k] = v
			}
		},
		PrepareUpdate:  onStep(func(csr, old *certificatesv1.CertificateSigningRequest) { csr.Spec = old.Spec }),
		ValidateCreate: checkOne(validation.CertificateSigningRequest),
		ValidateUpdate: checkStep(validation.CertificateSigningRequestUpdate),
		ValidateStatus: checkStep(validation.CertificateSigningRequestStatus),
		CopyStatus:     onStep(func(dst, src *certificatesv1.CertificateSigningRequest) { dst.Status = src.Status }),
		Subresources:   map[string]registry.Subresource{api.ApprovalSubresource: {Part: checkStep(approve)}},
		Fields: selectable(map[string]func(*certificatesv1.CertificateSigningRequest) string{
			"spec.signerName": func(csr *certificatesv1.CertificateSigningRequest) string { return csr.Spec.SignerName },
		}),
		Admit:    refuseMasters,
		Restrict: ownCertificate,
	}
}

// ownCertificate lets a kubelet ask for certificates of a kubelet for itself only.
func ownCertificate(u registry.User, obj, old api.Object) string {
	if _, ok := authorization.NodeOf(u); !ok || old != nil {
		return ""
	}
	spec := &obj.(*certificatesv1.CertificateSigningRequest).Spec
	if spec.SignerName != certificatesv1.KubeletServingSignerName && spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return ""
	}
	if req, err := api.ParseCertificateRequest(spec.Request); err != nil || req.Subject.CommonName != u.Name {
		return "a node may only ask for certificates with the common name " + u.Name
	}
	return ""
}

// approve takes the conditions of what a client sent to the subresource approval.
func approve(csr, given *certificatesv1.CertificateSigningRequest) field.ErrorList {
	old := csr.DeepCopy()
	csr.Status.Conditions = slices.Clone(given.Status.Conditions)
	now := metav1.NewTime(clock.Now())
	for i := range csr.Status.Conditions {
		c := &csr.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		for _, have := range old.Status.Conditions {
			if have.Type == c.Type && have.Status == c.Status && !have.LastTransitionTime.IsZero() {
				c.LastTransitionTime = have.LastTransitionTime
			}
		}
	}
	return validation.CertificateSigningRequestApproval(csr, old)
}

// refuseMasters keeps an approval from making a master: as Kubernetes' admission plugin CertificateSubjectRestriction.
func refuseMasters(obj api.Object, _ registry.Lister) error {
	csr := obj.(*certificatesv1.CertificateSigningRequest)
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	req, err := api.ParseCertificateRequest(csr.Spec.Request)
	if err != nil {
		return nil //nolint:nilerr // validation has named it
	}
	if name := req.Subject.CommonName; name == membership.User {
		return errors.New("use of " + csr.Spec.SignerName + " signer with the user name " + name + " is not allowed")
	}
	if g := api.PrivilegedGroup(req.Subject.Organization); g != "" {
		return errors.New("use of " + csr.Spec.SignerName + " signer with " + g + " group is not allowed")
	}
	return nil
}
