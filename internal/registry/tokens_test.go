package registry_test

import (
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/registry/serviceaccount"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store/memory"
)

// accounts is a registry with the service accounts robot and other, and a pod of robot's on node n.
func accounts(t *testing.T) (*registry.Registry, *serviceaccount.Tokens, *corev1.Pod) {
	t.Helper()
	authority := registrytest.Signer(t)
	reg, stop := registrytest.StartWith(t, memory.New(), strategy.Settings{Tokens: authority})
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	for _, name := range []string{"robot", "other"} {
		if _, err := admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod, err := admin.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.PodSpec{NodeName: "n", ServiceAccountName: "robot", Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes: []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}, {ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "vault", Audience: "vault"}}}}}}}}},
		client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return reg, serviceaccount.New(authority, reg.Objects()), pod.(*corev1.Pod)
}

// request asks for a token, as serviceaccounts/token does.
func request(t *testing.T, reg *registry.Registry, ask *registry.Request, spec authenticationv1.TokenRequestSpec) (*authenticationv1.TokenRequest, error) {
	t.Helper()
	made, err := reg.Act(t.Context(), ask, &authenticationv1.TokenRequest{Spec: spec}, registry.WriteOptions{})
	if err != nil {
		return nil, err
	}
	return made.(*authenticationv1.TokenRequest), nil
}

func TestTokenRequest(t *testing.T) {
	reg, _, pod := accounts(t)
	web := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: pod.UID}
	seconds := func(n int64) authenticationv1.TokenRequestSpec {
		return authenticationv1.TokenRequestSpec{ExpirationSeconds: &n}
	}
	bound := func(ref authenticationv1.BoundObjectReference) authenticationv1.TokenRequestSpec {
		return authenticationv1.TokenRequestSpec{BoundObjectRef: &ref}
	}
	never := func(error) bool { return false }
	for _, x := range []struct {
		name    string
		user    registry.User
		account string
		spec    authenticationv1.TokenRequestSpec
		refused func(error) bool
		lasts   time.Duration
	}{
		{"plain", registry.System, "robot", authenticationv1.TokenRequestSpec{}, never, time.Hour},
		{"longer", registry.System, "robot", seconds(7200), never, 2 * time.Hour},
		{"too short", registry.System, "robot", seconds(599), apierrors.IsInvalid, 0},
		{"too long", registry.System, "robot", seconds(1<<32 + 1), apierrors.IsInvalid, 0},
		{"of nobody", registry.System, "nobody", authenticationv1.TokenRequestSpec{}, apierrors.IsNotFound, 0},
		{"bound", registry.System, "robot", bound(*web), never, time.Hour},
		{"bound to a pod that is not there", registry.System, "robot", bound(authenticationv1.BoundObjectReference{Kind: "Pod", Name: "gone"}), apierrors.IsNotFound, 0},
		{"bound to an earlier pod", registry.System, "robot", bound(authenticationv1.BoundObjectReference{Kind: "Pod", Name: "web", UID: "old"}), apierrors.IsConflict, 0},
		{"bound to something else", registry.System, "robot", bound(authenticationv1.BoundObjectReference{Kind: "Secret", Name: "s"}), apierrors.IsInvalid, 0},
		{"bound to another's pod", registry.System, "other", bound(*web), apierrors.IsBadRequest, 0},
		{"by the pod's node", registry.NodeUser("n"), "robot", bound(*web), never, time.Hour},
		{"by the pod's node, for a service that the pod talks to", registry.NodeUser("n"), "robot",
			authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}, BoundObjectRef: web}, never, time.Hour},
		{"by the pod's node, for another service", registry.NodeUser("n"), "robot",
			authenticationv1.TokenRequestSpec{Audiences: []string{"bank"}, BoundObjectRef: web}, apierrors.IsForbidden, 0},
		{"by the pod's node, for any pod of that name", registry.NodeUser("n"), "robot",
			bound(authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web"}), apierrors.IsForbidden, 0},
		{"by the pod's node, not bound", registry.NodeUser("n"), "robot", authenticationv1.TokenRequestSpec{}, apierrors.IsForbidden, 0},
		{"by the pod's node, of another", registry.NodeUser("n"), "other", authenticationv1.TokenRequestSpec{}, apierrors.IsForbidden, 0},
		{"by another node", registry.NodeUser("m"), "robot", bound(*web), apierrors.IsForbidden, 0},
		{"by another part", registry.Part("scheduler"), "robot", authenticationv1.TokenRequestSpec{}, apierrors.IsForbidden, 0},
		{"by the account itself", account("default", "robot"), "robot", authenticationv1.TokenRequestSpec{}, apierrors.IsForbidden, 0},
	} {
		ask := registrytest.Ask("create", api.ServiceAccounts, "default", x.account, "token")
		ask.User = x.user
		got, err := request(t, reg, ask, x.spec)
		switch {
		case x.lasts == 0 && !x.refused(err):
			t.Errorf("%s: %v, %v", x.name, got, err)
		case x.lasts == 0:
		case err != nil:
			t.Errorf("%s: %v", x.name, err)
		case got.Status.Token == "" || *got.Spec.ExpirationSeconds != int64(x.lasts.Seconds()) || len(got.Spec.Audiences) != 1:
			t.Errorf("%s: %+v", x.name, got)
		}
	}
}

// account is the identity of a service account.
func account(namespace, name string) registry.User {
	return registry.User{Name: "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{registry.GroupServiceAccounts, registry.GroupServiceAccounts + ":" + namespace, registry.GroupAuthenticated}}
}

// A token holds as long as what it is bound to is there, that very one.
func TestAuthenticate(t *testing.T) {
	reg, tokens, pod := accounts(t)
	admin := local.New(reg, registry.System)
	token := func(spec authenticationv1.TokenRequestSpec) string {
		t.Helper()
		got, err := request(t, reg, registrytest.Ask("create", api.ServiceAccounts, "default", "robot", "token"), spec)
		if err != nil {
			t.Fatal(err)
		}
		return got.Status.Token
	}
	plain := token(authenticationv1.TokenRequestSpec{})
	bound := token(authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", Name: "web", UID: pod.UID}})
	vault := token(authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}})
	check := func(when string, token string, good bool) {
		t.Helper()
		user, err := tokens.Authenticate(t.Context(), token, tokens.Issuer())
		switch want := account("default", "robot"); {
		case good && (err != nil || user.Name != want.Name || !slices.Equal(user.Groups, want.Groups)):
			t.Errorf("%s: %+v, %v", when, user, err)
		case !good && !apierrors.IsUnauthorized(err):
			t.Errorf("%s: %+v, %v", when, user, err)
		}
	}
	check("plain", plain, true)
	check("bound", bound, true)
	check("for somebody else", vault, false)
	check("no token", "x.y.z", false)

	remove := func(kind *api.Kind, name string) {
		t.Helper()
		if _, err := admin.Delete(t.Context(), client.Key{Kind: kind, Namespace: "default", Name: name}, metav1.NewDeleteOptions(0)); err != nil {
			t.Fatal(err)
		}
	}
	remove(api.Pods, "web")
	check("its pod is gone", bound, false)
	check("it has no pod", plain, true)
	again := pod.DeepCopy()
	again.UID, again.ResourceVersion = "", ""
	if _, err := admin.Create(t.Context(), again, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	check("another pod has its name", bound, false)
	remove(api.ServiceAccounts, "robot")
	check("its account is gone", plain, false)
	if _, err := admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	check("another account has its name", plain, false)
}

// What a service account may do: read its own namespace, but for the secrets.
func TestServiceAccountRights(t *testing.T) {
	reg, _, _ := accounts(t)
	robot := account("default", "robot")
	for _, x := range []struct {
		name string
		a    registry.Request
		may  bool
	}{
		{"get a pod", registry.Request{Verb: "get", Kind: api.Pods, Namespace: "default", Name: "web"}, true},
		{"list config maps", registry.Request{Verb: "list", Kind: api.ConfigMaps, Namespace: "default"}, true},
		{"watch jobs", registry.Request{Verb: "watch", Kind: api.Jobs, Namespace: "default"}, true},
		{"read a scale", registry.Request{Verb: "get", Kind: api.Deployments, Sub: "scale", Namespace: "default", Name: "web"}, true},
		{"get a secret", registry.Request{Verb: "get", Kind: api.Secrets, Namespace: "default", Name: "s"}, false},
		{"list secrets", registry.Request{Verb: "list", Kind: api.Secrets, Namespace: "default"}, false},
		{"another namespace", registry.Request{Verb: "get", Kind: api.Pods, Namespace: "kube-system", Name: "web"}, false},
		{"all namespaces", registry.Request{Verb: "list", Kind: api.Pods}, false},
		{"nodes", registry.Request{Verb: "list", Kind: api.Nodes}, false},
		{"namespaces", registry.Request{Verb: "get", Kind: api.Namespaces, Name: "default"}, false},
		{"make a pod", registry.Request{Verb: "create", Kind: api.Pods, Namespace: "default"}, false},
		{"delete a pod", registry.Request{Verb: "delete", Kind: api.Pods, Namespace: "default", Name: "web"}, false},
		{"a status", registry.Request{Verb: "update", Kind: api.Pods, Sub: "status", Namespace: "default", Name: "web"}, false},
		{"exec", registry.Request{Verb: "create", Kind: api.Pods, Sub: "exec", Namespace: "default", Name: "web"}, false},
		{"a log", registry.Request{Verb: "get", Kind: api.Pods, Sub: "log", Namespace: "default", Name: "web"}, false},
		{"a token", registry.Request{Verb: "create", Kind: api.ServiceAccounts, Sub: "token", Namespace: "default", Name: "robot"}, false},
	} {
		x.a.User = robot
		if err := reg.Authorize(t.Context(), &x.a); (err == nil) != x.may {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}
