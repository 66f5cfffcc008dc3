package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/membership"
)

// The names in a kubelet's certificates.
const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
)

// nodes are the Nodes that a decision looks at.
type nodes interface {
	// get returns a Node; nil if there is none.
	get(name string) *corev1.Node
	// owner is the Node that has an address, besides not; nil if none has.
	owner(address netip.Addr, not string) *corev1.Node
	// reserved reports whether a name or address is the API's.
	reserved(host string) bool
}

// decision is what becomes of a request that nobody has decided about. The zero decision is to wait: for a person, or
// for the Node that it is about.
type decision struct {
	approve, deny   bool
	reason, message string
}

func denied(format string, args ...any) decision {
	return decision{deny: true, reason: "NotThisMachine", message: fmt.Sprintf(format, args...)}
}

// decide returns the decision about a request, which its signer would sign.
func decide(csr *certificatesv1.CertificateSigningRequest, req *x509.CertificateRequest, all nodes) decision {
	name, ok := strings.CutPrefix(req.Subject.CommonName, nodeUserPrefix)
	if !ok {
		return decision{}
	}
	itself := csr.Spec.Username == req.Subject.CommonName && slices.Contains(csr.Spec.Groups, nodesGroup)
	node := all.get(name)
	switch csr.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		joins := slices.Contains(csr.Spec.Groups, bootstrap.GroupWorkers)
		if !itself && !joins {
			return decision{}
		}
		if all.reserved(name) {
			return denied("the name %s is the API's: choose another --node-name", name)
		}
		if node != nil {
			if key := node.Annotations[api.MachineKeyAnnotation]; key != "" && key != certs.KeyPin(req.RawSubjectPublicKeyInfo) {
				return denied("%s", api.OtherMachine(name))
			}
		}
		return decision{approve: true, reason: "AutoApproved", message: "a kubelet's client certificate, for a machine that may join or has joined"}
	case certificatesv1.KubeletServingSignerName:
		if !itself || node == nil {
			return decision{}
		}
		if refusal := foreign(req, node, all); refusal != "" {
			return denied("%s", refusal)
		}
		if !settled(req, node, all) {
			return decision{}
		}
		return decision{approve: true, reason: "AutoApproved", message: "a kubelet's serving certificate, for the addresses of its Node"}
	}
	return decision{}
}

// foreign says what a serving certificate may never be for; empty if there is nothing. Of names it has the Node's alone,
// by which the API server knows a kubelet: none of the loopback's either, because on a master's own loopback the API is.
func foreign(req *x509.CertificateRequest, node *corev1.Node, all nodes) string {
	for _, name := range req.DNSNames {
		if name != node.Name || all.reserved(name) {
			return fmt.Sprintf("%s is not the name of node %s", name, node.Name)
		}
	}
	for _, raw := range req.IPAddresses {
		ip, ok := netip.AddrFromSlice(raw)
		if ip = ip.Unmap(); !ok || ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() || all.reserved(ip.String()) {
			return fmt.Sprintf("%s is no address of a node", ip)
		}
	}
	return ""
}

// settled reports whether the addresses of a request are those of its Node, and no other machine's. What a Node says may
// be a moment old, and an address may be about to move from one to another, so it is waited for.
func settled(req *x509.CertificateRequest, node *corev1.Node, all nodes) bool {
	for _, raw := range req.IPAddresses {
		ip, _ := netip.AddrFromSlice(raw)
		ip = ip.Unmap()
		other := all.owner(ip, node.Name)
		if other != nil && !sameMachine(other, node) || !slices.Contains(addresses(node), ip) {
			return false
		}
	}
	return true
}

// sameMachine reports whether a machine has two Nodes, as after its name was changed.
func sameMachine(a, b *corev1.Node) bool {
	key := a.Annotations[api.MachineKeyAnnotation]
	return key != "" && key == b.Annotations[api.MachineKeyAnnotation]
}

// addresses are a Node's IP addresses.
func addresses(n *corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && (a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP) {
			out = append(out, ip.Unmap())
		}
	}
	return out
}

// usages are what a signer puts into its certificates.
type usages struct {
	needs certificatesv1.KeyUsage
	ext   x509.ExtKeyUsage
}

var signers = map[string]usages{
	certificatesv1.KubeAPIServerClientSignerName:        {certificatesv1.UsageClientAuth, x509.ExtKeyUsageClientAuth},
	certificatesv1.KubeAPIServerClientKubeletSignerName: {certificatesv1.UsageClientAuth, x509.ExtKeyUsageClientAuth},
	certificatesv1.KubeletServingSignerName:             {certificatesv1.UsageServerAuth, x509.ExtKeyUsageServerAuth},
}

// keyUsages are the other usages that a request to one of our signers may name.
var keyUsages = map[certificatesv1.KeyUsage]x509.KeyUsage{
	certificatesv1.UsageDigitalSignature: x509.KeyUsageDigitalSignature,
	certificatesv1.UsageKeyEncipherment:  x509.KeyUsageKeyEncipherment,
}

// check returns what a request's certificate is for; the error says why its signer does not sign it, as Kubernetes'
// signers do (pkg/apis/certificates/helpers.go).
func check(csr *certificatesv1.CertificateSigningRequest, req *x509.CertificateRequest) (x509.KeyUsage, []x509.ExtKeyUsage, error) {
	signer := signers[csr.Spec.SignerName]
	var usage x509.KeyUsage
	for _, u := range csr.Spec.Usages {
		bit, ok := keyUsages[u]
		if !ok && u != signer.needs {
			return 0, nil, fmt.Errorf("usage %q is not signed by %s", u, csr.Spec.SignerName)
		}
		usage |= bit
	}
	if !slices.Contains(csr.Spec.Usages, signer.needs) {
		return 0, nil, fmt.Errorf("usage %q is required by %s", signer.needs, csr.Spec.SignerName)
	}
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		if err := checkKubelet(req, signer.needs == certificatesv1.UsageServerAuth); err != nil {
			return 0, nil, err
		}
	} else if req.Subject.CommonName == membership.User {
		return 0, nil, errors.New("certificates of the user " + membership.User + " are not signed")
	} else if g := api.PrivilegedGroup(req.Subject.Organization); g != "" {
		return 0, nil, errors.New("certificates of the group " + g + " are not signed")
	}
	return usage, []x509.ExtKeyUsage{signer.ext}, nil
}

// checkKubelet checks the names of a kubelet's certificate, for serving or as a client.
func checkKubelet(req *x509.CertificateRequest, serving bool) error {
	switch {
	case !slices.Equal(req.Subject.Organization, []string{nodesGroup}):
		return fmt.Errorf("subject organization is not %s", nodesGroup)
	case len(req.Subject.CommonName) <= len(nodeUserPrefix) || !strings.HasPrefix(req.Subject.CommonName, nodeUserPrefix):
		return fmt.Errorf("subject common name does not begin with %s", nodeUserPrefix)
	case len(req.EmailAddresses) > 0 || len(req.URIs) > 0:
		return errors.New("email and URI subjectAltNames are not allowed")
	case serving && len(req.DNSNames)+len(req.IPAddresses) == 0:
		return errors.New("DNS or IP subjectAltName is required")
	case !serving && len(req.DNSNames)+len(req.IPAddresses) > 0:
		return errors.New("DNS and IP subjectAltNames are not allowed")
	}
	return nil
}

// How long requests are kept, as in Kubernetes' csrcleaner.
const (
	keepDone    = time.Hour
	keepPending = 24 * time.Hour
)

// endOf is when a request is deleted.
func endOf(csr *certificatesv1.CertificateSigningRequest) time.Time {
	if len(csr.Status.Conditions) == 0 {
		return csr.CreationTimestamp.Add(keepPending)
	}
	decided := csr.Status.Conditions[0].LastUpdateTime.Time
	if decided.IsZero() {
		decided = csr.CreationTimestamp.Time
	}
	return decided.Add(keepDone)
}

func has(csr *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == t })
}
