package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// request is a request for a certificate.
type request struct {
	signer string
	usage  certificatesv1.KeyUsage
	names  []string
	ips    []netip.Addr
}

var errEnded = errors.New("the watch has ended before the request was decided")

// asked is a request that has been made. Only one goroutine uses it.
type asked struct {
	object api.Object // nil: there is none that may still be decided
}

// ask makes a CertificateSigningRequest, or finds the one that was made before, and waits until its certificate is issued.
// The error is final if the request is denied or cannot be signed; then the next call makes a new one.
func (a *asked) ask(ctx context.Context, c client.Interface, r request, node string, data []byte, log *slog.Logger) ([]byte, error) {
	if a.object != nil {
		now, err := c.Get(ctx, client.KeyOf(a.object))
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if a.object = now; err != nil {
			a.object = nil
		}
	}
	if a.object == nil {
		made, err := c.Create(ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-" + node + "-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{Request: data, SignerName: r.signer,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, r.usage}}}, client.WriteOptions{})
		if err != nil {
			return nil, err
		}
		log.Info("asked for a certificate", "request", made.GetName(), "signer", r.signer)
		a.object = made
	}
	cert, err := wait(ctx, c, a.object)
	if err == nil || errors.As(err, new(final)) || errors.Is(err, errDeleted) {
		a.object = nil
	}
	return cert, err
}

var errDeleted = errors.New("the request was deleted before it was decided")

func wait(ctx context.Context, c client.Interface, made api.Object) ([]byte, error) {
	if cert, err := outcome(made); cert != nil || err != nil {
		return cert, err
	}
	w, err := c.Watch(ctx, api.CertificateSigningRequests, client.WatchOptions{ResourceVersion: made.GetResourceVersion(),
		Fields: fields.OneTermEqualSelector("metadata.name", made.GetName())})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for e := range w.Events() {
		if e.Type == client.Deleted {
			return nil, errDeleted
		}
		if e.Object == nil {
			continue
		}
		if cert, err := outcome(e.Object); cert != nil || err != nil {
			return cert, err
		}
	}
	if err := w.Err(); err != nil {
		return nil, err
	}
	return nil, errEnded
}

// outcome is a request's certificate, or why there will be none; both nil: it is not decided yet.
func outcome(obj api.Object) ([]byte, error) {
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil, fmt.Errorf("expected a CertificateSigningRequest, not %T", obj)
	}
	if len(csr.Status.Certificate) > 0 {
		return csr.Status.Certificate, nil
	}
	for _, x := range csr.Status.Conditions {
		if x.Type == certificatesv1.CertificateDenied || x.Type == certificatesv1.CertificateFailed {
			return nil, final{fmt.Errorf("the request %s for a certificate was refused: %s", csr.Name, x.Message)}
		}
	}
	return nil, nil
}
