package certificates

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Signer makes certificates: *certs.Authority.
type Signer interface {
	Sign(req *x509.CertificateRequest, usage x509.KeyUsage, ext []x509.ExtKeyUsage, lasts time.Duration) ([]byte, error)
}

// Controller is the certificates controller.
type Controller struct {
	client   client.Interface
	signer   Signer
	requests *informer.Informer[*certificatesv1.CertificateSigningRequest]
	nodes    *informer.Informer[*corev1.Node]
	api      func() ([]string, error)
	loop     *loop.Loop
	now      func() time.Time
}

// New makes the controller. apiNames are the names and addresses of the masters' own certificates, which no worker gets; as
// long as they cannot be told nothing is approved.
func New(c client.Interface, views *informer.Views, signer Signer, apiNames func() ([]string, error), log *slog.Logger) *Controller {
	o := informer.Options{Views: views, Log: log}
	s := &Controller{client: c, signer: signer, api: apiNames, now: clock.Now,
		requests: informer.New[*certificatesv1.CertificateSigningRequest](c, api.CertificateSigningRequests, o),
		nodes:    informer.New[*corev1.Node](c, api.Nodes, o)}
	s.loop = loop.New("certificates", log, s.reconcile)
	s.requests.OnChange(func(_, now *certificatesv1.CertificateSigningRequest) {
		if now != nil {
			s.loop.Add(loop.Key{Name: now.Name})
		}
	})
	s.nodes.OnChange(func(old, now *corev1.Node) {
		if old == nil || now == nil || !slices.Equal(addresses(old), addresses(now)) || !maps.Equal(old.Annotations, now.Annotations) {
			s.again()
		}
	})
	return s
}

// Run works until ctx ends.
func (s *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{s.nodes, s.requests}, s.loop.Workers(1))
}

// again asks for the requests that may be waiting for a Node.
func (s *Controller) again() {
	for _, csr := range s.requests.List() {
		if len(csr.Status.Conditions) == 0 {
			s.loop.Add(loop.Key{Name: csr.Name})
		}
	}
}

func (s *Controller) get(name string) *corev1.Node {
	n, _ := s.nodes.Get("", name)
	return n
}

func (s *Controller) owner(address netip.Addr, not string) *corev1.Node {
	for _, n := range s.nodes.List() {
		if n.Name != not && slices.Contains(addresses(n), address) {
			return n
		}
	}
	return nil
}

// known are the Nodes, and what was told to be the API's.
type known struct {
	*Controller
	names []string
}

func (k known) reserved(host string) bool { return slices.Contains(k.names, host) }

func (s *Controller) reconcile(ctx context.Context, key loop.Key) error {
	csr, ok := s.requests.Get("", key.Name)
	if !ok {
		return nil
	}
	if left := endOf(csr).Sub(s.now()); left <= 0 {
		return s.remove(ctx, csr)
	} else {
		s.loop.AddAfter(key, left)
	}
	if _, ours := signers[csr.Spec.SignerName]; !ours || len(csr.Status.Certificate) > 0 ||
		has(csr, certificatesv1.CertificateDenied) || has(csr, certificatesv1.CertificateFailed) {
		return nil
	}
	req, err := api.ParseCertificateRequest(csr.Spec.Request)
	if err != nil {
		return err // validation has read it
	}
	usage, ext, refusal := check(csr, req)
	if has(csr, certificatesv1.CertificateApproved) {
		return s.issue(ctx, csr, req, usage, ext, refusal)
	}
	if refusal != nil {
		return nil // a person may still deny it; approved, it fails
	}
	return s.decide(ctx, csr, req)
}

// decide writes the decision, if there is one. The Node may have been written a moment ago: what the informer shows
// then leads to an approval that the API does not act on, because it compares the machine's key again on each request.
func (s *Controller) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, req *x509.CertificateRequest) error {
	names, err := s.api()
	if err != nil {
		return fmt.Errorf("the masters' names and addresses, which no other machine may have: %w", err)
	}
	d := decide(csr, req, known{s, names})
	kind := certificatesv1.CertificateApproved
	switch {
	case d.deny:
		kind = certificatesv1.CertificateDenied
	case !d.approve:
		return nil
	}
	return s.write(ctx, csr, api.ApprovalSubresource, func(c *certificatesv1.CertificateSigningRequest) {
		s.condition(c, kind, d.reason, d.message)
	})
}

func (s *Controller) issue(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, req *x509.CertificateRequest,
	usage x509.KeyUsage, ext []x509.ExtKeyUsage, refusal error) error {
	if refusal != nil {
		return s.write(ctx, csr, "status", func(c *certificatesv1.CertificateSigningRequest) {
			s.condition(c, certificatesv1.CertificateFailed, "SignerValidationFailure", refusal.Error())
		})
	}
	var lasts time.Duration
	if e := csr.Spec.ExpirationSeconds; e != nil {
		lasts = time.Duration(*e) * time.Second
	}
	cert, err := s.signer.Sign(req, usage, ext, lasts)
	if err != nil {
		return err
	}
	return s.write(ctx, csr, "status", func(c *certificatesv1.CertificateSigningRequest) { c.Status.Certificate = cert })
}

func (s *Controller) condition(c *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType, reason, message string) {
	now := metav1.NewTime(s.now())
	c.Status.Conditions = append(c.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: t, Status: corev1.ConditionTrue,
		Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now})
}

func (s *Controller) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, sub string, change func(*certificatesv1.CertificateSigningRequest)) error {
	upd := csr.DeepCopy()
	change(upd)
	_, err := s.client.Update(ctx, upd, client.WriteOptions{Subresource: sub})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // its event brings the request here again
	}
	return err
}

func (s *Controller) remove(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	_, err := s.client.Delete(ctx, client.KeyOf(csr), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &csr.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
