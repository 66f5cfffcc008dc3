package token

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan/plantest"
)

// mint makes tokens that are numbered, and remembers what it was asked for.
type mint struct {
	client.Interface
	made int
	asks []authenticationv1.TokenRequestSpec
	err  error
}

func (m *mint) Token(_ context.Context, namespace, account string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	if m.err != nil {
		return nil, m.err
	}
	m.made++
	m.asks = append(m.asks, req.Spec)
	out := req.DeepCopy()
	out.Status.Token = fmt.Sprint(namespace, "/", account, " ", m.made)
	return out, nil
}

// A token is used for four fifths of its time, and to its end if there is no newer one.
func TestTokenManager(t *testing.T) {
	api, now := &mint{}, plantest.Noon
	keeper := New(api, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	pod := plantest.Pod("web")
	pod.UID, pod.Spec.ServiceAccountName = "u1", "robot"
	hour := &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3600))}
	down := errors.New("the API server is down")
	for _, x := range []struct {
		name string
		at   time.Duration // after noon
		err  error         // of the API server
		want string        // empty: none can be had
		due  time.Duration
	}{
		{"none yet, and none to be had", 0, down, "", retryAfter},
		{"the first", 0, nil, "default/robot 1", 48 * time.Minute},
		{"the same", 48*time.Minute - 1, nil, "default/robot 1", 48 * time.Minute},
		{"to be renewed, and cannot be", 48 * time.Minute, down, "default/robot 1", 48*time.Minute + retryAfter},
		{"not asked again at once", 48*time.Minute + retryAfter - 1, nil, "default/robot 1", 48*time.Minute + retryAfter},
		{"renewed", 49 * time.Minute, nil, "default/robot 2", 97 * time.Minute},
		{"at its end, and no other to be had", 109 * time.Minute, down, "", 109*time.Minute + retryAfter},
		{"renewed late", 110 * time.Minute, nil, "default/robot 3", 158 * time.Minute},
	} {
		now, api.err = plantest.Noon.Add(x.at), x.err
		got, err := keeper.Get(t.Context(), pod, hour)
		if got != x.want || (err != nil) != (x.want == "") {
			t.Errorf("%s: %q, %v", x.name, got, err)
		}
		if due := keeper.NextRenewal("u1"); x.due != 0 && !due.Equal(plantest.Noon.Add(x.due)) || x.due == 0 && !due.IsZero() {
			t.Errorf("%s: due %s after noon", x.name, due.Sub(plantest.Noon))
		}
	}
	ask := api.asks[0]
	if ref := ask.BoundObjectRef; ref.Name != "web" || ref.UID != "u1" || *ask.ExpirationSeconds != 3600 || ask.Audiences != nil {
		t.Errorf("asked for %+v", ask)
	}
	// Another audience is another token, and the first of the two to end is the one to wake for.
	vault := &corev1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: new(int64(600))}
	if got, err := keeper.Get(t.Context(), pod, vault); err != nil || got != "default/robot 4" || api.asks[3].Audiences[0] != "vault" {
		t.Errorf("%q, %v: %+v", got, err, api.asks)
	}
	if due := keeper.NextRenewal("u1"); !due.Equal(now.Add(8 * time.Minute)) {
		t.Errorf("due %s from now", due.Sub(now))
	}
	keeper.Drop("u1")
	if !keeper.NextRenewal("u1").IsZero() {
		t.Error("a pod that is gone has a token to be renewed")
	}
}
