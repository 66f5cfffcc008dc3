package jointoken

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/wait"

	"minik8s/internal/api"
	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
)

// Options say what token to make.
type Options struct {
	// TTL is how long it may be used; 0: until it is deleted.
	TTL         time.Duration
	Description string
	// Masters makes a token for masters; else it is for workers.
	Masters bool
	// Quiet prints only the token.
	Quiet bool
}

// Create makes a token and prints the command line with which another machine joins.
func Create(ctx context.Context, s *session.Session, o Options) error {
	pin, err := clusterPin(ctx, s)
	if err != nil {
		return err
	}
	server, err := serverAddress(ctx, s)
	if err != nil {
		return err
	}
	group, role := bootstrap.GroupWorkers, "worker"
	if o.Masters {
		group, role = bootstrap.GroupMasters, "master,worker"
	}
	t, opts := bootstrap.New(pin), bootstrap.Options{Groups: []string{group}, Description: o.Description}
	if o.TTL > 0 {
		opts.Expires = s.Now().Add(o.TTL)
	}
	if _, err := s.API.Create(ctx, bootstrap.SecretOf(t, opts), client.WriteOptions{FieldManager: session.Manager}); err != nil {
		return err
	}
	if o.Quiet {
		s.Say("%s", t)
	} else {
		s.Say("minik8sd --role=%s --server=https://%s --token=%s", role, server, t)
	}
	return nil
}

// caPatience is how long a new cluster may take to publish its CA.
const caPatience = 10 * time.Second

// clusterPin is the pin of the cluster's CA, from the ConfigMap that every namespace has.
func clusterPin(ctx context.Context, s *session.Session) (string, error) {
	key := client.Key{Kind: api.ConfigMaps, Namespace: metav1.NamespaceSystem, Name: "kube-root-ca.crt"}
	var cm *corev1.ConfigMap
	// A controller makes it a moment after the first start.
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, caPatience, true, func(ctx context.Context) (done bool, err error) {
		cm, err = client.Get[*corev1.ConfigMap](ctx, s.API, key)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return "", fmt.Errorf("the cluster's CA: %w", err)
	}
	block, _ := pem.Decode([]byte(cm.Data["ca.crt"]))
	if block == nil {
		return "", errors.New("the ConfigMap kube-system/kube-root-ca.crt has no ca.crt: the cluster's CA is not known")
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("the ConfigMap kube-system/kube-root-ca.crt: %w", err)
	}
	return certs.KeyPin(ca.RawSubjectPublicKeyInfo), nil
}

// serverAddress is the host and port under which other machines reach the API, as the API says.
func serverAddress(ctx context.Context, s *session.Session) (string, error) {
	resp, err := s.API.Do(ctx, http.MethodGet, "/api", nil, "", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	var v metav1.APIVersions
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		return "", fmt.Errorf("/api: %w", err)
	}
	for _, a := range v.ServerAddressByClientCIDRs {
		if a.ServerAddress != "" {
			return a.ServerAddress, nil
		}
	}
	return "", errors.New("the API does not say under which address other machines reach it")
}

var columns = []metav1.TableColumnDefinition{
	{Name: "ID", Type: "string"}, {Name: "Expires In", Type: "string"}, {Name: "Age", Type: "string"}, {Name: "Groups", Type: "string"},
	{Name: "Description", Type: "string"},
}

// List prints the tokens without their secrets.
func List(ctx context.Context, s *session.Session) error {
	secrets, _, err := client.All[*corev1.Secret](ctx, s.API, api.Secrets, client.ListOptions{Namespace: metav1.NamespaceSystem,
		Fields: fields.OneTermEqualSelector("type", string(corev1.SecretTypeBootstrapToken))})
	if err != nil {
		return err
	}
	table, now := &metav1.Table{ColumnDefinitions: columns}, s.Now()
	for _, secret := range secrets {
		t, ok := bootstrap.FromSecret(secret)
		if !ok {
			continue
		}
		expires := "never"
		switch {
		case t.Expired(now):
			expires = "expired"
		case !t.Expires.IsZero():
			expires = duration.HumanDuration(t.Expires.Sub(now))
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{t.ID, expires, s.Age(secret.CreationTimestamp.Time), strings.Join(t.Groups, ","), t.Description}})
	}
	if len(table.Rows) == 0 {
		s.Note("there is no join token; \"minik8sd ctl token create\" makes one")
		return nil
	}
	printer.NewGrid(s.Console, printer.Layout{}).Print(table)
	return nil
}

// Delete ends tokens, named by their IDs or given as a whole. Machines that have joined stay.
func Delete(ctx context.Context, s *session.Session, tokens []string) error {
	count := s.Tally()
	for _, arg := range tokens {
		id, _, _ := strings.Cut(arg, ".")
		_, err := s.API.Delete(ctx, client.Key{Kind: api.Secrets, Namespace: metav1.NamespaceSystem, Name: bootstrap.SecretName(id)}, nil)
		if count.Add(err); err == nil {
			s.Say("token %s deleted", id)
		}
	}
	return count.Err()
}
