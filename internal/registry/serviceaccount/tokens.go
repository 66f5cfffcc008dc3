package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/clock"
	"minik8s/internal/registry/authorization"
	"minik8s/internal/tokens"
)

// The lifetime of a token: as requested, within Kubernetes' bounds.
const (
	tokenSeconds    = 3600
	minTokenSeconds = 10 * 60
	maxTokenSeconds = 1 << 32
)

// tokenLeeway is how long the tokens of a deleted pod or service account stay valid after its deletion timestamp.
const tokenLeeway = time.Minute

// tokenRequests is the kind of the body of serviceaccounts/token. Such objects are never stored.
var tokenRequests = &api.Kind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest", Plural: "tokenrequests", Singular: "tokenrequest",
	Namespaced: true, New: func() api.Object { return &authenticationv1.TokenRequest{} }}

// Reader reads the newest version of an object. The error is NotFound if the object does not exist.
type Reader interface {
	Read(ctx context.Context, kind *api.Kind, namespace, name string) (api.Object, error)
}

// Tokens makes and checks the tokens of service accounts. Without an authority none are made, and none is valid.
type Tokens struct {
	authority *tokens.Authority
	objects   Reader
}

// New returns Tokens that sign with the authority a, for the accounts and pods that objects reads.
func New(a *tokens.Authority, objects Reader) *Tokens { return &Tokens{authority: a, objects: objects} }

// Issuer returns the issuer's name, which is also the audience of tokens for the API server; empty without an authority.
func (t *Tokens) Issuer() string {
	if t.authority == nil {
		return ""
	}
	return t.authority.Issuer()
}

// KeySet returns the issuer's keys as a JSON Web Key Set; nil without an authority.
func (t *Tokens) KeySet() []byte {
	if t.authority == nil {
		return nil
	}
	return t.authority.KeySet()
}

// Request makes a token of a service account with the lifetime, audience and pod binding that req asks for. user is
// the requester. The errors are API errors: 400, 403, 404, 409 or 422, and 500 if signing or reading fails.
func (t *Tokens) Request(ctx context.Context, user authorization.User, namespace, name string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	if t.authority == nil {
		return nil, apierrors.NewNotFound(api.ServiceAccounts.GR(), name+"/token")
	}
	out := req.DeepCopy()
	if err := t.completeRequest(name, out); err != nil {
		return nil, err
	}
	account, err := t.objects.Read(ctx, api.ServiceAccounts, namespace, name)
	if err != nil {
		return nil, err
	}
	holder := tokens.Holder{Namespace: namespace, ServiceAccount: tokens.Ref{Name: name, UID: string(account.GetUID())}}
	if holder.Pod, err = t.bindTo(ctx, user, namespace, name, &req.Spec); err != nil {
		return nil, err
	}
	token, until, err := t.authority.Issue(holder, out.Spec.Audiences, time.Duration(*out.Spec.ExpirationSeconds)*time.Second)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	out.TypeMeta = metav1.TypeMeta{APIVersion: tokenRequests.APIVersion(), Kind: tokenRequests.Kind}
	out.Namespace, out.Name, out.CreationTimestamp = namespace, name, metav1.NewTime(clock.Now())
	out.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(until)}
	return out, nil
}

// completeRequest fills in what a request leaves out, and refuses invalid values.
func (t *Tokens) completeRequest(name string, req *authenticationv1.TokenRequest) error {
	if req.Name != "" && req.Name != name {
		return apierrors.NewBadRequest("metadata.name: " + req.Name + " does not match the name of the path, " + name)
	}
	spec, path := &req.Spec, field.NewPath("spec")
	if len(spec.Audiences) == 0 {
		spec.Audiences = []string{t.authority.Issuer()}
	}
	if spec.ExpirationSeconds == nil {
		spec.ExpirationSeconds = new(int64(tokenSeconds))
	}
	var errs field.ErrorList
	switch s := *spec.ExpirationSeconds; {
	case s < minTokenSeconds:
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), s, "may not specify a duration less than 10 minutes"))
	case s > maxTokenSeconds:
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), s, "may not specify a duration larger than 2^32 seconds"))
	}
	if ref := spec.BoundObjectRef; ref != nil && (ref.Kind != "Pod" || ref.APIVersion != "v1" && ref.APIVersion != "") {
		errs = append(errs, field.NotSupported(path.Child("boundObjectRef", "kind"), ref.Kind, []string{"Pod"}))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(tokenRequests.GVK().GroupKind(), name, errs)
	}
	return nil
}

// bindTo finds the pod that a token is to be bound to, as it was asked for. The pod must run as the account. A kubelet gets
// tokens only as restrictNode says.
func (t *Tokens) bindTo(ctx context.Context, user authorization.User, namespace, account string, spec *authenticationv1.TokenRequestSpec) (*tokens.Ref, error) {
	ref := spec.BoundObjectRef
	node, isNode := authorization.NodeOf(user)
	var pod *corev1.Pod
	if ref != nil {
		obj, err := t.objects.Read(ctx, api.Pods, namespace, ref.Name)
		if err != nil && !(isNode && apierrors.IsNotFound(err)) { // a node does not learn which pods exist
			return nil, err
		}
		pod, _ = obj.(*corev1.Pod)
	}
	if isNode {
		if reason := restrictNode(node, pod, spec); reason != "" {
			return nil, apierrors.NewForbidden(api.ServiceAccounts.GR(), account, errors.New(reason))
		}
	}
	switch {
	case ref == nil:
		return nil, nil
	case ref.UID != "" && ref.UID != pod.UID:
		return nil, apierrors.NewConflict(api.Pods.GR(), ref.Name, fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	case pod.Spec.ServiceAccountName != account:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", account))
	}
	return &tokens.Ref{Name: pod.Name, UID: string(pod.UID)}, nil
}

// Authenticate returns the user of a token that was presented for audience. The token's service account, and its pod
// if it is bound to one, must still exist. The error is 401 for a token that is not valid, or the reader's own error
// if the account or pod could not be read.
func (t *Tokens) Authenticate(ctx context.Context, token, audience string) (authorization.User, error) {
	if t.authority == nil {
		return authorization.User{}, apierrors.NewUnauthorized("tokens are not served")
	}
	h, err := t.authority.Read(token, audience)
	if err != nil {
		return authorization.User{}, apierrors.NewUnauthorized(err.Error())
	}
	for kind, ref := range map[*api.Kind]*tokens.Ref{api.ServiceAccounts: &h.ServiceAccount, api.Pods: h.Pod} {
		if ref == nil {
			continue
		}
		if there, err := t.stands(ctx, kind, h.Namespace, *ref); err != nil {
			return authorization.User{}, err
		} else if !there {
			return authorization.User{}, apierrors.NewUnauthorized(fmt.Sprintf("the token's %s %s is not there any more", kind.Singular, ref.Name))
		}
	}
	u := authorization.User{Name: h.User(), UID: h.ServiceAccount.UID, Groups: []string{authorization.GroupServiceAccounts,
		authorization.GroupServiceAccounts + ":" + h.Namespace, authorization.GroupAuthenticated}}
	if h.Pod != nil {
		u.Extra = map[string][]string{"authentication.kubernetes.io/pod-name": {h.Pod.Name}, "authentication.kubernetes.io/pod-uid": {h.Pod.UID}}
	}
	return u, nil
}

// stands reports whether the object with exactly this UID still exists in its newest version: deleting an object
// invalidates its tokens. The error is set if the object could not be read.
func (t *Tokens) stands(ctx context.Context, kind *api.Kind, namespace string, ref tokens.Ref) (bool, error) {
	obj, err := t.objects.Read(ctx, kind, namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	case string(obj.GetUID()) != ref.UID:
		return false, nil
	}
	deleted := obj.GetDeletionTimestamp()
	return deleted == nil || clock.Now().Before(deleted.Add(tokenLeeway)), nil
}
