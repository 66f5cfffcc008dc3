package tokens

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func authority(t *testing.T, issuer string) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(key, issuer)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRead(t *testing.T) {
	const me = "https://kubernetes.default.svc.cluster.local"
	a, other := authority(t, me), authority(t, me)
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a.now = func() time.Time { return noon }
	other.now = a.now
	elsewhere := &Authority{key: a.key, issuer: "https://elsewhere", now: a.now}
	holder := Holder{Namespace: "default", ServiceAccount: Ref{"robot", "u1"}, Pod: &Ref{"web", "u2"}}
	issue := func(by *Authority, h Holder, audience string) string {
		token, until, err := by.Issue(h, []string{audience, "also"}, time.Hour)
		if err != nil || !until.Equal(noon.Add(time.Hour)) {
			t.Fatal(until, err)
		}
		return token
	}
	by := func(method jwt.SigningMethod, key any) string {
		token, err := jwt.NewWithClaims(method, claims{Holder: holder, RegisteredClaims: jwt.RegisteredClaims{Issuer: me, Subject: holder.User(),
			Audience: []string{me}, ExpiresAt: jwt.NewNumericDate(noon.Add(time.Hour))}}).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	good := issue(a, holder, me)
	head, rest, _ := strings.Cut(good, ".")
	for _, x := range []struct {
		name, token string
		at          time.Duration // after it was issued
		wrong       string        // part of the error; empty: the token is valid
	}{
		{"good", good, 0, ""},
		{"to the last second", good, time.Hour - time.Second, ""},
		{"expired", good, time.Hour, "has expired"},
		{"by a clock that is behind", good, -time.Minute, ""},
		{"not yet", good, -time.Minute - time.Second, "not valid yet"},
		{"for somebody else", issue(a, holder, "vault"), 0, "is for"},
		{"of another key", issue(other, holder, me), 0, "signature is invalid"},
		{"of another issuer", issue(elsewhere, holder, me), 0, "issuer"},
		{"of nobody", issue(a, Holder{Namespace: "default"}, me), 0, "no service account"},
		{"changed", head + "." + strings.Replace(rest, "a", "b", 1), 0, "not valid"},
		{"unsigned", by(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType), 0, "signing method none is invalid"},
		{"signed with what everybody knows", by(jwt.SigningMethodHS256, []byte("public")), 0, "signing method HS256 is invalid"},
		{"no token", "hello", 0, "not valid"},
		{"empty", "", 0, "not valid"},
	} {
		a.now = func() time.Time { return noon.Add(x.at) }
		got, err := a.Read(x.token, me)
		switch {
		case x.wrong == "" && (err != nil || got.User() != "system:serviceaccount:default:robot" || *got.Pod != *holder.Pod):
			t.Errorf("%s: %+v, %v", x.name, got, err)
		case x.wrong != "" && (err == nil || !strings.Contains(err.Error(), x.wrong)):
			t.Errorf("%s: %v, want %q", x.name, err, x.wrong)
		}
	}
}
