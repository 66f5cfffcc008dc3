package tokens

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/apimachinery/pkg/util/uuid"

	"minik8s/internal/clock"
)

// Authority signs tokens and verifies them.
type Authority struct {
	key    *ecdsa.PrivateKey
	keyID  string
	issuer string
	now    func() time.Time
}

// New returns the authority of a cluster. issuer is its name, a URL. It fails if the key cannot be used.
func New(key *ecdsa.PrivateKey, issuer string) (*Authority, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return &Authority{key: key, keyID: base64.RawURLEncoding.EncodeToString(sum[:]), issuer: issuer, now: clock.Now}, nil
}

// Issuer returns the issuer, which is also the audience of the API server.
func (a *Authority) Issuer() string { return a.issuer }

// KeySet returns the public key as a JSON Web Key Set (RFC 7517), with which others verify tokens.
func (a *Authority) KeySet() []byte {
	point, err := a.key.PublicKey.Bytes() // the byte 4, then both coordinates
	if err != nil {
		return nil
	}
	n := (len(point) - 1) / 2
	part := base64.RawURLEncoding.EncodeToString
	set, err := json.Marshal(map[string]any{"keys": []map[string]string{{"use": "sig", "kty": "EC", "crv": "P-256", "alg": jwt.SigningMethodES256.Alg(),
		"kid": a.keyID, "x": part(point[1 : 1+n]), "y": part(point[1+n:])}}})
	if err != nil {
		return nil
	}
	return set
}

// Ref identifies one object for ever. Another object with the same name has another UID.
type Ref struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Holder is the account, and perhaps the pod, that a token is for.
type Holder struct {
	Namespace      string `json:"namespace"`
	ServiceAccount Ref    `json:"serviceaccount"`
	// Pod is the pod that the token is bound to; the token ends with it. Nil: it ends with the service account.
	Pod *Ref `json:"pod,omitempty"`
}

// User returns the holder's user name.
func (h Holder) User() string {
	return "system:serviceaccount:" + h.Namespace + ":" + h.ServiceAccount.Name
}

type claims struct {
	jwt.RegisteredClaims
	Holder Holder `json:"kubernetes.io"`
}

// clockSkew is how far the clock of another reader may be behind ours.
const clockSkew = time.Minute

// Issue signs a token that is valid for the given time. It fails if signing fails.
func (a *Authority) Issue(h Holder, audiences []string, lasts time.Duration) (token string, until time.Time, err error) {
	now := a.now().Truncate(time.Second)
	until = now.Add(lasts)
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims{Holder: h, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: a.issuer, Subject: h.User(), Audience: audiences, ID: string(uuid.NewUUID()),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-clockSkew)), ExpiresAt: jwt.NewNumericDate(until),
	}})
	t.Header["kid"] = a.keyID
	token, err = t.SignedString(a.key)
	return token, until, err
}

// Read returns the holder of a token. It fails if the token was not signed by us, is not valid now, or is not for the
// audience.
func (a *Authority) Read(token, audience string) (Holder, error) {
	var c claims
	_, err := jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return a.key.Public(), nil },
		// We fix the algorithm, because a token that chooses its own could choose none.
		jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}),
		jwt.WithIssuer(a.issuer), jwt.WithExpirationRequired(), jwt.WithTimeFunc(a.now))
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return Holder{}, errors.New("the token has expired")
	case err != nil:
		return Holder{}, fmt.Errorf("the token is not valid: %w", err)
	case !slices.Contains(c.Audience, audience):
		return Holder{}, fmt.Errorf("the token is for %q, not for %q", []string(c.Audience), audience)
	case c.Holder.ServiceAccount.Name == "" || c.Holder.ServiceAccount.UID == "" || c.Subject != c.Holder.User():
		return Holder{}, errors.New("the token names no service account")
	}
	return c.Holder, nil
}
