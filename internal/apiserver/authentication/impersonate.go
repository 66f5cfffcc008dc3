package authentication

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// The headers with which a client asks to be treated as another user: kubectl --as, --as-group, --as-uid.
const (
	impersonateUser  = "Impersonate-User"
	impersonateGroup = "Impersonate-Group"
	impersonateUID   = "Impersonate-Uid"
	impersonateExtra = "Impersonate-Extra-"
)

// The kinds for which authorisation is asked about impersonation. They have no objects and are in no table.
var (
	users           = &api.Kind{Version: "v1", Kind: "User", Plural: "users"}
	groups          = &api.Kind{Version: "v1", Kind: "Group", Plural: "groups"}
	serviceAccounts = &api.Kind{Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Namespaced: true}
	uids            = &api.Kind{Group: "authentication.k8s.io", Version: "v1", Kind: "UID", Plural: "uids"}
	userExtras      = &api.Kind{Group: "authentication.k8s.io", Version: "v1", Kind: "UserExtra", Plural: "userextras"}
)

const serviceAccountPrefix = "system:serviceaccount:"

// Impersonate returns the user to judge the request as: user itself, or the one that the Impersonate headers name, if
// user may impersonate it. It never ignores a header: impersonation that is not allowed is refused (403).
func (a *Authenticator) Impersonate(req *http.Request, user registry.User) (registry.User, error) {
	as, asked, err := impersonated(req.Header)
	if err != nil || !asked {
		return user, err
	}
	ask := func(kind *api.Kind, sub, namespace, name string) error {
		return a.reg.Authorize(req.Context(), &registry.Request{User: user, Verb: "impersonate", Kind: kind, Sub: sub, Namespace: namespace, Name: name})
	}
	if ns, name, ok := serviceAccount(as.Name); ok {
		err = ask(serviceAccounts, "", ns, name)
	} else {
		err = ask(users, "", "", as.Name)
	}
	for _, g := range as.Groups {
		if err == nil {
			err = ask(groups, "", "", g)
		}
	}
	if err == nil && as.UID != "" {
		err = ask(uids, "", "", as.UID)
	}
	for key, values := range as.Extra {
		for _, v := range values {
			if err == nil {
				err = ask(userExtras, key, "", v)
			}
		}
	}
	if err != nil {
		return registry.User{}, err
	}
	// Groups that every user of this kind of name has without asking for them.
	if ns, _, ok := serviceAccount(as.Name); ok && len(as.Groups) == 0 {
		as.Groups = []string{registry.GroupServiceAccounts, registry.GroupServiceAccounts + ":" + ns}
	}
	if as.Name != "system:anonymous" && !slices.Contains(as.Groups, registry.GroupAuthenticated) {
		as.Groups = append(as.Groups, registry.GroupAuthenticated)
	}
	return as, nil
}

// serviceAccount splits the user name of a service account into its namespace and name.
func serviceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != ""
}

// impersonated reads the headers.
func impersonated(h http.Header) (as registry.User, asked bool, err error) {
	as = registry.User{Name: h.Get(impersonateUser), UID: h.Get(impersonateUID), Groups: slices.Clone(h.Values(impersonateGroup))}
	for name, values := range h {
		key, ok := strings.CutPrefix(name, impersonateExtra)
		if !ok {
			continue
		}
		key = strings.ToLower(key)
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		if as.Extra == nil {
			as.Extra = map[string][]string{}
		}
		as.Extra[key] = append(as.Extra[key], values...)
	}
	if as.Name == "" && (as.UID != "" || len(as.Groups) > 0 || len(as.Extra) > 0) {
		return as, true, apierrors.NewBadRequest("Impersonate-User: required when a group, uid or extra is impersonated")
	}
	return as, as.Name != "", nil
}
