package bootstrap_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/bootstrap"
)

var pin = strings.Repeat("a1", 32)

func TestTokensAreReadAsWritten(t *testing.T) {
	for range 100 {
		made := bootstrap.New(pin)
		if got, err := bootstrap.Parse(made.String()); err != nil || got != made {
			t.Fatalf("%v, %v is not %v", got, err, made)
		}
		bare, err := bootstrap.Parse(" " + made.Bearer() + "\n")
		if err != nil || bare.Pin != "" || bare.Secret != made.Secret {
			t.Fatal(bare, err)
		}
	}
	for _, bad := range []string{"", "a.b", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef.12", "abcdef.0123456789abcdef." + pin + "0"} {
		if _, err := bootstrap.Parse(bad); err == nil {
			t.Errorf("%q was taken", bad)
		} else if bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("the error shows the token: %v", err)
		}
	}
}

func TestCheck(t *testing.T) {
	now := time.Now()
	tok := bootstrap.New(pin)
	opts := bootstrap.Options{Groups: []string{bootstrap.GroupWorkers}, Expires: now.Add(time.Hour), Description: "a test"}
	good := bootstrap.SecretOf(tok, opts)
	got, err := bootstrap.Check(tok, good, now)
	if err != nil || len(got.Groups) != 1 || got.Groups[0] != bootstrap.GroupWorkers || got.Description != "a test" {
		t.Fatal(got, err)
	}
	for name, change := range map[string]func(data map[string][]byte){
		"another secret":     func(d map[string][]byte) { d["token-secret"] = []byte("0123456789abcdef") },
		"no secret":          func(d map[string][]byte) { delete(d, "token-secret") },
		"expired":            func(d map[string][]byte) { d["expiration"] = []byte(now.Add(-time.Second).Format(time.RFC3339)) },
		"expires unreadably": func(d map[string][]byte) { d["expiration"] = []byte("tomorrow") },
		"not for this":       func(d map[string][]byte) { d["usage-bootstrap-authentication"] = []byte("false") },
		"another id":         func(d map[string][]byte) { d["token-id"] = []byte("abcdef") },
	} {
		s := good.DeepCopy()
		change(s.Data)
		if _, err := bootstrap.Check(tok, s, now); err == nil {
			t.Errorf("%s: it was accepted", name)
		} else if strings.Contains(err.Error(), tok.Secret) {
			t.Errorf("%s: the error shows the secret", name)
		}
	}
	elsewhere, other := good.DeepCopy(), good.DeepCopy()
	elsewhere.Namespace, other.Type = "default", "Opaque"
	for name, s := range map[string]*corev1.Secret{"another namespace": elsewhere, "another type": other} {
		if _, err := bootstrap.Check(tok, s, now); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
	if _, err := bootstrap.Check(tok, nil, now); err == nil {
		t.Error("a token without a Secret was accepted")
	}
	s := good.DeepCopy()
	s.Data["auth-extra-groups"] = []byte("system:masters," + bootstrap.GroupWorkers)
	if got, err := bootstrap.Check(tok, s, now); err != nil || len(got.Groups) != 1 {
		t.Error("a token makes masters:", got.Groups, err)
	}
}
