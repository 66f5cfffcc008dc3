package validation

import (
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// CertificateSigningRequest checks a new request, as Kubernetes does (pkg/apis/certificates/validation).
func CertificateSigningRequest(csr *certificatesv1.CertificateSigningRequest) field.ErrorList {
	path, spec := field.NewPath("spec"), &csr.Spec
	var errs field.ErrorList
	if _, err := api.ParseCertificateRequest(spec.Request); err != nil {
		errs = append(errs, field.Invalid(path.Child("request"), string(spec.Request), err.Error()))
	}
	if len(spec.Usages) == 0 {
		errs = append(errs, field.Required(path.Child("usages"), ""))
	}
	for i, u := range spec.Usages {
		at := path.Child("usages").Index(i)
		if !slices.Contains(keyUsages, u) {
			errs = append(errs, field.NotSupported(at, u, keyUsages))
		}
		if slices.Contains(spec.Usages[:i], u) {
			errs = append(errs, field.Duplicate(at, u))
		}
	}
	if e := spec.ExpirationSeconds; e != nil && *e < minCertificateSeconds {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *e, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	if spec.SignerName == legacyUnknown {
		errs = append(errs, field.Invalid(path.Child("signerName"), spec.SignerName, "the legacy signerName is not allowed via this API version"))
	} else {
		errs = append(errs, signerName(path.Child("signerName"), spec.SignerName)...)
	}
	return append(errs, csrStatus(csr)...)
}

const (
	minCertificateSeconds = 600
	legacyUnknown         = "kubernetes.io/legacy-unknown"
)

var keyUsages = []certificatesv1.KeyUsage{
	certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment,
	certificatesv1.UsageKeyEncipherment, certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment,
	certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign, certificatesv1.UsageEncipherOnly, certificatesv1.UsageDecipherOnly,
	certificatesv1.UsageAny, certificatesv1.UsageServerAuth, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning,
	certificatesv1.UsageEmailProtection, certificatesv1.UsageSMIME, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel,
	certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping, certificatesv1.UsageOCSPSigning, certificatesv1.UsageMicrosoftSGC,
	certificatesv1.UsageNetscapeSGC,
}

// signerName checks "domain/path": "example.com/user-certs".
func signerName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	errs := say(path, name, validation.IsDNS1123Subdomain(domain))
	if !strings.Contains(domain, ".") {
		errs = append(errs, field.Invalid(path, name, "should be a domain with at least two segments separated by dots"))
	}
	if len(domain) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.TooLong(path, domain, validation.DNS1123SubdomainMaxLength))
	}
	return append(errs, say(path, name, validation.IsDNS1123Subdomain(rest))...)
}

// CertificateSigningRequestUpdate checks any change of a request: what was asked for stays, and so do the decision
// and the certificate once they are there.
func CertificateSigningRequestUpdate(csr, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(csr.Spec, old.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "a request cannot be changed: make another one"))
	}
	if len(old.Status.Certificate) > 0 {
		errs = append(errs, apivalidation.ValidateImmutableField(csr.Status.Certificate, old.Status.Certificate, field.NewPath("status", "certificate"))...)
	}
	conditions := field.NewPath("status", "conditions")
	for _, have := range old.Status.Conditions {
		switch have.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			if !slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == have.Type }) {
				errs = append(errs, field.Forbidden(conditions, "updates may not remove a condition of type "+string(have.Type)))
			}
		}
	}
	return append(errs, csrStatus(csr)...)
}

// CertificateSigningRequestApproval checks a write to the subresource approval: it decides, and issues nothing.
func CertificateSigningRequestApproval(csr, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	errs := CertificateSigningRequestUpdate(csr, old)
	if string(csr.Status.Certificate) != string(old.Status.Certificate) {
		errs = append(errs, field.Forbidden(field.NewPath("status", "certificate"), "an approval cannot issue a certificate"))
	}
	return errs
}

// CertificateSigningRequestStatus checks a write to the subresource status: it issues, and decides nothing.
func CertificateSigningRequestStatus(csr, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	errs := CertificateSigningRequestUpdate(csr, old)
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied} {
		of := func(csr *certificatesv1.CertificateSigningRequest) (out []certificatesv1.CertificateSigningRequestCondition) {
			for _, c := range csr.Status.Conditions {
				if c.Type == t {
					out = append(out, c)
				}
			}
			return out
		}
		if !equality.Semantic.DeepEqual(of(csr), of(old)) {
			errs = append(errs, field.Forbidden(field.NewPath("status", "conditions"), "condition "+string(t)+" is set by the subresource approval"))
		}
	}
	return errs
}

func csrStatus(csr *certificatesv1.CertificateSigningRequest) field.ErrorList {
	path := field.NewPath("status", "conditions")
	var errs field.ErrorList
	seen := map[certificatesv1.RequestConditionType]bool{}
	for i, c := range csr.Status.Conditions {
		at := path.Index(i)
		switch {
		case c.Type == "":
			errs = append(errs, field.Required(at.Child("type"), ""))
		case seen[c.Type]:
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen[c.Type] = true
		switch c.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			errs = append(errs, oneOf(at.Child("status"), c.Status, corev1.ConditionTrue)...)
		default:
			errs = append(errs, oneOf(at.Child("status"), c.Status, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)...)
		}
	}
	if seen[certificatesv1.CertificateApproved] && seen[certificatesv1.CertificateDenied] {
		errs = append(errs, field.Invalid(path, certificatesv1.CertificateDenied, "Approved and Denied conditions are mutually exclusive"))
	}
	return errs
}
