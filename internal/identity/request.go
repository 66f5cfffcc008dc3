package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	certificatesv1 "k8s.io/api/certificates/v1"
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

// ask makes a CertificateSigningRequest and waits until its certificate is issued. The error is final if the request
// is denied or cannot be signed.
func (r request) ask(ctx context.Context, api client.Interface, node string, data []byte, log *slog.Logger) ([]byte, error) {
	made, err := api.Create(ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-" + node + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: data, SignerName: r.signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, r.usage}}}, client.WriteOptions{})
	if err != nil {
		return nil, err
	}
	log.Info("asked for a certificate", "request", made.GetName(), "signer", r.signer)
	return wait(ctx, api, made)
}

func wait(ctx context.Context, c client.Interface, made api.Object) ([]byte, error) {
	w, err := c.Watch(ctx, api.CertificateSigningRequests, client.WatchOptions{ResourceVersion: made.GetResourceVersion(),
		Fields: fields.OneTermEqualSelector("metadata.name", made.GetName())})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for e := range w.Events() {
		csr, ok := e.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			continue
		}
		if e.Type == client.Deleted {
			return nil, fmt.Errorf("the request %s was deleted before it was decided", made.GetName())
		}
		if len(csr.Status.Certificate) > 0 {
			return csr.Status.Certificate, nil
		}
		for _, x := range csr.Status.Conditions {
			if x.Type == certificatesv1.CertificateDenied || x.Type == certificatesv1.CertificateFailed {
				return nil, final{fmt.Errorf("the request %s for a certificate was refused: %s", made.GetName(), x.Message)}
			}
		}
	}
	if err := w.Err(); err != nil {
		return nil, err
	}
	return nil, errEnded
}
