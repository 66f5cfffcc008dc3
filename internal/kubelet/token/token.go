package token

import (
	"context"
	"log/slog"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"minik8s/internal/client"
)

// retryAfter is after how long a failed renewal of a token is retried, while the old one is valid.
const retryAfter = 30 * time.Second

// Manager holds the tokens that the node's pods have in their volumes. Its methods are safe for concurrent use.
type Manager struct {
	client client.Interface
	now    func() time.Time
	log    *slog.Logger

	mu   sync.Mutex
	held map[types.UID]map[request]heldToken
}

// request is a volume's request for a token; equal requests of a pod share one token.
type request struct {
	audience string
	seconds  int64
}

type heldToken struct {
	value      string
	renew, end time.Time
}

// New makes a Manager without tokens. now is the clock.
func New(c client.Interface, now func() time.Time, log *slog.Logger) *Manager {
	return &Manager{client: c, now: now, log: log, held: map[types.UID]map[request]heldToken{}}
}

// Get returns a token for a pod: the one it has, or a new one when four fifths of that one's lifetime are over. If a
// renewal fails, the old token is returned while it is valid.
func (t *Manager) Get(ctx context.Context, pod *corev1.Pod, ask *corev1.ServiceAccountTokenProjection) (string, error) {
	wish := request{ask.Audience, ptr.Deref(ask.ExpirationSeconds, 3600)}
	old := t.lookUp(pod.UID, wish)
	asked := t.now()
	if old.value != "" && asked.Before(old.renew) {
		return old.value, nil
	}
	value, lasts, err := t.fetch(ctx, pod, wish)
	switch {
	case err == nil:
		// Counted by this machine's clock, from before the request: the API server's clock may differ.
		t.keep(pod.UID, wish, heldToken{value: value, renew: asked.Add(lasts * 4 / 5), end: asked.Add(lasts)})
		return value, nil
	case asked.Before(old.end):
		t.log.Warn("token not renewed, the old one still holds", "pod", pod.Namespace+"/"+pod.Name, "until", old.end, "error", err)
		old.renew = asked.Add(retryAfter)
		t.keep(pod.UID, wish, old)
		return old.value, nil
	}
	t.keep(pod.UID, wish, heldToken{renew: asked.Add(retryAfter)}) // the volume may have one from before, which has to be renewed
	return "", err
}

func (t *Manager) fetch(ctx context.Context, pod *corev1.Pod, wish request) (token string, lasts time.Duration, err error) {
	spec := authenticationv1.TokenRequestSpec{ExpirationSeconds: &wish.seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}
	if wish.audience != "" {
		spec.Audiences = []string{wish.audience}
	}
	made, err := t.client.Token(ctx, pod.Namespace, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{Spec: spec})
	if err != nil {
		return "", 0, err
	}
	return made.Status.Token, time.Duration(ptr.Deref(made.Spec.ExpirationSeconds, wish.seconds)) * time.Second, nil
}

func (t *Manager) lookUp(pod types.UID, wish request) heldToken {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[pod][wish]
}

func (t *Manager) keep(pod types.UID, wish request, token heldToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[pod] == nil {
		t.held[pod] = map[request]heldToken{}
	}
	t.held[pod][wish] = token
}

// NextRenewal is when the first of a pod's tokens is to be renewed; zero if it has none.
func (t *Manager) NextRenewal(pod types.UID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first time.Time
	for _, token := range t.held[pod] {
		if first.IsZero() || token.renew.Before(first) {
			first = token.renew
		}
	}
	return first
}

// Drop forgets a pod's tokens.
func (t *Manager) Drop(pod types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, pod)
}
