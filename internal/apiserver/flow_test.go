package apiserver

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/flowcontrol"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store/memory"
)

// TestTooManyRequests: when others have taken all there is, a request is sent away with when to come again; the
// cluster's owner is not, and afterwards all goes on.
func TestTooManyRequests(t *testing.T) {
	authority := registrytest.Signer(t)
	reg, stop := registrytest.StartWith(t, memory.New(), strategy.Settings{Tokens: authority})
	defer stop()
	if _, err := local.New(reg, registry.System).Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	made, err := reg.Act(t.Context(), registrytest.Ask("create", api.ServiceAccounts, "default", "robot", "token"), &authenticationv1.TokenRequest{}, registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	limits := flowcontrol.Default
	limits.MaxWait = time.Millisecond
	s := New(Config{Registry: reg, Tokens: authority, Limits: limits, Log: slog.New(slog.DiscardHandler)})
	get := func(path, token string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodGet, path, nil)
		req.TLS = &tls.ConnectionState{}
		req.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, req)
		return w
	}
	const path = "/api/v1/namespaces/default/configmaps"
	// enter takes units as one of several service accounts.
	enter := func(i int64, units int64, long bool) (func(), error) {
		return s.limiter.Enter(t.Context(), registry.User{Name: fmt.Sprint("other-", i), Groups: []string{registry.GroupServiceAccounts}}, units, long)
	}
	var leave []func()
	for i := range limits.Users {
		for range limits.Units / limits.Users / limits.Heaviest {
			l, err := enter(i, 10*limits.Units, false) // however heavy it is, one request takes no more than that
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, l)
		}
		if _, err := enter(i, 1, false); !apierrors.IsTooManyRequests(err) {
			t.Errorf("one user has more than a share: %v", err)
		}
		if i == 0 {
			if w := get(path, made.(*authenticationv1.TokenRequest).Status.Token); w.Code != http.StatusOK {
				t.Errorf("one user keeps another out: %d %s", w.Code, w.Body)
			}
		}
	}
	if w := get(path, made.(*authenticationv1.TokenRequest).Status.Token); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "TooManyRequests") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	for path, want := range map[string]int{"/apis": http.StatusTooManyRequests, "/openapi/v2": http.StatusTooManyRequests, "/version": http.StatusOK} {
		if w := get(path, made.(*authenticationv1.TokenRequest).Status.Token); w.Code != want {
			t.Errorf("%s while too much is under way: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
	if w := get("/api/v1/namespaces/default/secrets", made.(*authenticationv1.TokenRequest).Status.Token); w.Code != http.StatusForbidden {
		t.Errorf("who may not is told so all the same: %d", w.Code)
	}
	for _, u := range []registry.User{registry.System, registry.NodeUser("n")} {
		free, err := s.limiter.Enter(t.Context(), u, limits.Units, false)
		if err != nil {
			t.Fatalf("%s: %v", u.Name, err)
		}
		free()
	}
	for _, l := range leave {
		l()
	}
	if w := get(path, made.(*authenticationv1.TokenRequest).Status.Token); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
	leave = nil
	for i := range limits.Long {
		l, err := enter(i%limits.Users, 1, true)
		if err != nil {
			t.Fatal(i, err)
		}
		leave = append(leave, l)
	}
	if w := get(path+"?watch=1", made.(*authenticationv1.TokenRequest).Status.Token); w.Code != http.StatusTooManyRequests {
		t.Errorf("one watch too many: %d", w.Code)
	}
	for _, l := range leave {
		l()
	}
}
