package identity

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"minik8s/internal/api"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// However often the way to the master breaks while a request is undecided, it is one request; a refused one is followed
// by another.
func TestOneRequestAtATime(t *testing.T) {
	live := local.New(registrytest.New(t), registry.System)
	broken := faulty.New(live, faulty.Rates{Break: 1}, 1)
	data := requestFor(t)
	r := request{signer: "example.com/nobody", usage: certificatesv1.UsageClientAuth}
	count := func() []api.Object {
		t.Helper()
		list, err := live.List(t.Context(), api.CertificateSigningRequests, client.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	a := &asked{}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := a.ask(ctx, broken, r, "n1", data, slog.New(slog.DiscardHandler))
			ended <- err
		}()
		for broke := false; !broke; {
			touch(t, live)
			select {
			case err := <-ended:
				if broke = true; err == nil {
					t.Fatal("a certificate without a signer")
				}
			default:
			}
		}
		cancel()
	}
	all := count()
	if len(all) != 1 {
		t.Fatalf("%d requests", len(all))
	}
	csr := all[0].DeepCopyObject().(*certificatesv1.CertificateSigningRequest)
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: "True", Message: "no"}}
	if _, err := live.Update(t.Context(), csr, client.WriteOptions{Subresource: api.ApprovalSubresource}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ask(t.Context(), live, r, "n1", data, slog.New(slog.DiscardHandler)); !errors.As(err, new(final)) {
		t.Fatal(err)
	}
	if len(count()) != 1 || a.object != nil {
		t.Errorf("%d requests after a refusal, %v", len(count()), a.object)
	}
}

func requestFor(t *testing.T) []byte {
	t.Helper()
	key, err := certs.OpenKey(t.TempDir(), "k")
	if err != nil {
		t.Fatal(err)
	}
	data, err := certs.NewRequest(key, pkix.Name{CommonName: "x"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// touch changes the one request, once it is there, so that a watch of it has something to break at.
func touch(t *testing.T, c client.Interface) {
	t.Helper()
	w, err := c.Watch(t.Context(), api.CertificateSigningRequests, client.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e := <-w.Events()
	upd := e.Object.DeepCopyObject().(*certificatesv1.CertificateSigningRequest)
	upd.Annotations = map[string]string{"touched": upd.ResourceVersion}
	upd.ResourceVersion = ""
	if _, err := c.Update(t.Context(), upd, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}
