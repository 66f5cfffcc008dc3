package bootstrap

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Token is a bootstrap token, with the pin of the cluster's CA.
type Token struct {
	// ID names the token; it is no secret.
	ID string
	// Secret proves that its holder was let in.
	Secret string
	// Pin is the CA's certs.KeyPin; empty in what a client sends.
	Pin string
}

var form = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})(?:\.([0-9a-f]{64}))?$`)

var errForm = errors.New(`expected ID.SECRET.PIN, as "minik8sd ctl token create" prints it`)

// Parse reads a token, with or without a pin. The error does not contain the token.
func Parse(s string) (Token, error) {
	m := form.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return Token{}, errForm
	}
	return Token{ID: m[1], Secret: m[2], Pin: m[3]}, nil
}

// String is the token as it is given to a machine.
func (t Token) String() string {
	if t.Pin == "" {
		return t.Bearer()
	}
	return t.Bearer() + "." + t.Pin
}

// Bearer is the token as it is sent to the API.
func (t Token) Bearer() string { return t.ID + "." + t.Secret }

// New makes a token for the CA with a pin.
func New(pin string) Token {
	return Token{ID: random(6), Secret: random(16), Pin: pin}
}

// random returns n letters and digits.
func random(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	out := make([]byte, 0, n)
	buf := make([]byte, 4*n)
	for len(out) < n {
		rand.Read(buf)
		for _, b := range buf {
			if int(b) < 256/len(letters)*len(letters) && len(out) < n { // so that each is as likely
				out = append(out, letters[int(b)%len(letters)])
			}
		}
	}
	return string(out)
}

// The Secret of a token; its type and keys are Kubernetes'.
const (
	namePrefix     = "bootstrap-token-"
	keyID          = "token-id"
	keySecret      = "token-secret"
	keyExpiration  = "expiration"
	keyDescription = "description"
	keyUsage       = "usage-bootstrap-authentication"
	keyGroups      = "auth-extra-groups"
)

// SecretName is the name of the Secret of a token, in the namespace kube-system.
func SecretName(id string) string { return namePrefix + id }

// Options are what a token is for.
type Options struct {
	// Groups are what its holder is a member of, beside Group; each begins with "system:bootstrappers:".
	Groups []string
	// Expires is when it ends; zero: never.
	Expires time.Time
	// Description is for people.
	Description string
}

// SecretOf is the Secret to store for a token.
func SecretOf(t Token, opts Options) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: SecretName(t.ID)},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{keyID: []byte(t.ID), keySecret: []byte(t.Secret), keyUsage: []byte("true")}}
	if len(opts.Groups) > 0 {
		s.Data[keyGroups] = []byte(strings.Join(opts.Groups, ","))
	}
	if !opts.Expires.IsZero() {
		s.Data[keyExpiration] = []byte(opts.Expires.UTC().Format(time.RFC3339))
	}
	if opts.Description != "" {
		s.Data[keyDescription] = []byte(opts.Description)
	}
	return s
}

// Stored is a token as its Secret describes it, without its secret.
type Stored struct {
	ID string
	Options
	// Usable says that it authenticates, apart from its expiry.
	Usable bool
}

// FromSecret reads the Secret of a token; ok is false if it is none. A token whose expiration cannot be read has
// expired: an entry that a typing error made eternal would let anybody in.
func FromSecret(s *corev1.Secret) (t Stored, ok bool) {
	id, found := strings.CutPrefix(s.Name, namePrefix)
	if s.Type != corev1.SecretTypeBootstrapToken || !found || s.Namespace != metav1.NamespaceSystem {
		return Stored{}, false
	}
	t = Stored{ID: id, Usable: string(s.Data[keyUsage]) == "true" && string(s.Data[keyID]) == id && len(s.Data[keySecret]) > 0}
	t.Description = string(s.Data[keyDescription])
	for g := range strings.SplitSeq(string(s.Data[keyGroups]), ",") {
		if g = strings.TrimSpace(g); groupForm.MatchString(g) {
			t.Groups = append(t.Groups, g)
		}
	}
	if v := string(s.Data[keyExpiration]); v != "" {
		var err error
		if t.Expires, err = time.Parse(time.RFC3339, v); err != nil {
			t.Expires = time.Unix(0, 0)
		}
	}
	return t, true
}

// Expired reports whether the token has ended.
func (t Stored) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// Group is the group of everybody who shows a bootstrap token. GroupWorkers may join workers, GroupMasters masters: its
// members get the cluster's keys.
const (
	Group        = "system:bootstrappers"
	GroupWorkers = "system:bootstrappers:minik8s:workers"
	GroupMasters = "system:bootstrappers:minik8s:masters"
)

var groupForm = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)

// User is the user name of a token's holder.
func User(id string) string { return "system:bootstrap:" + id }

// Check reports whether a token is that of a Secret and is valid now. The errors say what to do and are the same for a
// wrong and an unknown secret.
func Check(t Token, s *corev1.Secret, now time.Time) (Stored, error) {
	if s == nil {
		return Stored{}, errUnknown
	}
	stored, ok := FromSecret(s)
	if !ok || !stored.Usable || s.DeletionTimestamp != nil || subtle.ConstantTimeCompare(s.Data[keySecret], []byte(t.Secret)) != 1 {
		return Stored{}, errUnknown
	}
	if stored.Expired(now) {
		return Stored{}, fmt.Errorf("the join token %s expired at %s; make a new one with \"minik8sd ctl token create\"", t.ID, stored.Expires.UTC().Format(time.RFC3339))
	}
	return stored, nil
}

var errUnknown = errors.New("the join token is not known here: it is wrong, expired or deleted; make a new one with \"minik8sd ctl token create\"")
