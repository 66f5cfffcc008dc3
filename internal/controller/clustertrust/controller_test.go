package clustertrust

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
)

func ca(t *testing.T) string {
	t.Helper()
	a, err := certs.OpenAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Cert)
}

func trust(client, front string) Trust {
	return Trust{ClientCA: []byte(client), FrontProxyCA: []byte(front), FrontProxy: "front", User: "U", UID: "I", Group: "G", ExtraPrefix: "E-"}
}

func TestMerge(t *testing.T) {
	client, mine, theirs, now := ca(t), ca(t), ca(t), time.Now()
	const cas = "requestheader-client-ca-file"
	first := merge(nil, trust(client, mine), now)
	if first["client-ca-file"] != client || first[cas] != mine || first["requestheader-allowed-names"] != `["front"]` || first["requestheader-extra-headers-prefix"] != `["E-"]` {
		t.Fatal(first)
	}
	both := merge(first, trust(client, theirs), now)
	if both[cas] != mine+theirs || both["client-ca-file"] != client {
		t.Error(both)
	}
	if again := merge(both, trust(client, mine), now); again[cas] != both[cas] {
		t.Error("another order:", again)
	}
	odd := merge(map[string]string{cas: "garbage\n" + theirs + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "other": "stays", "requestheader-username-headers": "[]"}, trust(client, mine), now)
	if odd[cas] != theirs+mine || odd["other"] != "stays" || odd["requestheader-username-headers"] != `["U"]` {
		t.Error(odd)
	}
	if late := merge(both, trust(client, mine), now.AddDate(100, 0, 0)); late[cas] != "" {
		t.Error("what has expired stays:", late)
	}
}

// Several masters each put there what they have; who changes or deletes it sees it come back.
func TestSeveralMasters(t *testing.T) {
	c := ct.New(t)
	ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}})
	client0, one, two := ca(t), ca(t), ca(t)
	for _, front := range []string{one, two} {
		c.Start(New(c.As("clustertrust-controller"), trust(client0, front), slog.New(slog.DiscardHandler)).Run)
	}
	whole := func() {
		t.Helper()
		ct.Until(c, "the ConfigMap", api.ConfigMaps, func(all []*corev1.ConfigMap) bool {
			for _, m := range all {
				if cas := m.Data["requestheader-client-ca-file"]; m.Name == Name && strings.Contains(cas, one) && strings.Contains(cas, two) && m.Data["client-ca-file"] == client0 {
					return true
				}
			}
			return false
		})
	}
	whole()
	key := client.Key{Kind: api.ConfigMaps, Namespace: metav1.NamespaceSystem, Name: Name}
	if _, err := c.Admin().Delete(c.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
	whole()
}
