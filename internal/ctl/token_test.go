package ctl

import (
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/ctl/exit"
)

// A token is shown once, with the line to run; lists have no secret; it goes by its ID or as a whole.
func TestToken(t *testing.T) {
	ca, err := certs.OpenAuthority(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-root-ca.crt"},
		Data: map[string]string{"ca.crt": string(ca.Cert)}})
	if got := f.ctl("", "token", "list"); got.code != 0 || !strings.Contains(got.err, "there is no join token") {
		t.Errorf("%+v", got)
	}
	made := f.ctl("", "token", "create", "--ttl", "2h", "--description", "for the lab")
	m := regexp.MustCompile(`^minik8sd --role=worker --server=https://\S+ --token=(\S+)\n$`).FindStringSubmatch(made.out)
	if m == nil {
		t.Fatalf("%+v", made)
	}
	tok, err := bootstrap.Parse(m[1])
	if err != nil || tok.Pin != ca.Pin() {
		t.Fatal(tok, err)
	}
	secret, ok := f.get("/api/v1/namespaces/kube-system/secrets/" + bootstrap.SecretName(tok.ID)).(*corev1.Secret)
	if !ok {
		t.Fatal("no Secret was made")
	}
	stored, err := bootstrap.Check(tok, secret, testTime.Add(time.Hour))
	if err != nil || !stored.Expires.Equal(testTime.Add(2*time.Hour)) || stored.Groups[0] != bootstrap.GroupWorkers {
		t.Errorf("%+v, %v", stored, err)
	}
	if got := f.ctl("", "token", "list"); !strings.Contains(got.out, tok.ID) || !strings.Contains(got.out, "120m") ||
		!strings.Contains(got.out, "for the lab") || strings.Contains(got.out, tok.Secret) {
		t.Errorf("%+v", got)
	}
	if got := f.ctl("", "token", "delete", m[1]); got.out != "token "+tok.ID+" deleted\n" || strings.Contains(got.out+got.err, tok.Secret) {
		t.Errorf("%+v", got)
	}
	if got := f.ctl("", "token", "delete", tok.ID); got.code != exit.NotFound {
		t.Errorf("deleted twice: %+v", got)
	}
	if got := f.ctl("", "token", "create", "-q", "--ttl", "0"); len(strings.TrimSpace(got.out)) != 6+1+16+1+64 {
		t.Errorf("%+v", got)
	}
	for args, says := range map[string]string{"create --ttl=-1h": "is over already", "create x": "takes only flags", "delete": "which one", "": "token what?", "make": "no command \"make\""} {
		if got := f.ctl("", append([]string{"token"}, strings.Fields(args)...)...); got.code != exit.Usage || !strings.Contains(got.text, says) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
