package client

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
)

// Key is the place of one object. Namespace is empty for kinds without one.
type Key struct {
	Kind            *api.Kind
	Namespace, Name string
}

// KeyOf is the key of a decoded object.
func KeyOf(obj api.Object) Key {
	return Key{Kind: api.KindOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// KindFor is the kind of an object that is to be written. The error is BadRequest if its Go type is no kind's.
func KindFor(obj api.Object) (*api.Kind, error) {
	if kind := api.KindOf(obj); kind != nil {
		return kind, nil
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("%T is no kind of the API", obj))
}

// Home is the namespace of an object that names none: "default" if its kind is namespaced.
func Home(kind *api.Kind, namespace string) string {
	if kind.Namespaced && namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}

// CheckCreate refuses options that a creation cannot have (BadRequest).
func CheckCreate(opts WriteOptions) error {
	if opts.Subresource != "" {
		return apierrors.NewBadRequest("subresource " + opts.Subresource + ": create makes whole objects; there are Bind and Token")
	}
	return nil
}

// NotScaled is the error for a kind whose objects have no subresource scale.
func NotScaled(key Key) error {
	return apierrors.NewNotFound(key.Kind.GR(), key.Name+"/"+api.ScaleSubresource)
}

// String is "pods default/web".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind.String() + " " + k.Name
	}
	return k.Kind.String() + " " + k.Namespace + "/" + k.Name
}

// Interface reads and writes objects. Objects that it returns may be shared with other readers: never change them,
// use DeepCopyObject first. It neither keeps nor changes its arguments.
//
// What the API answers is an error with a Status (package apierrors of apimachinery). Every call may be Forbidden,
// TooManyRequests, or an error of the connection without a Status: a write may then have been done.
type Interface interface {
	// Get returns one object, as of the last acknowledged write. The error is NotFound if there is none.
	Get(ctx context.Context, key Key) (api.Object, error)
	// List returns the objects that opts selects, all at one revision. The error is Expired (410) if Continue is from
	// a list whose revision is gone, and BadRequest for a field that cannot be selected by.
	List(ctx context.Context, kind *api.Kind, opts ListOptions) (*List, error)
	// Watch streams changes until ctx ends, Stop is called or the stream breaks. The error is Expired (410) if the
	// history since opts.ResourceVersion is gone.
	Watch(ctx context.Context, kind *api.Kind, opts WatchOptions) (Watcher, error)

	// Create stores a new object and returns it as stored. generateName works. It has no subresource (BadRequest). The
	// error is AlreadyExists if the name is taken, and Invalid, with every field that is wrong, if it breaks a rule.
	Create(ctx context.Context, obj api.Object, opts WriteOptions) (api.Object, error)
	// Update replaces an object, or with opts.Subresource "status" its status only. With a
	// resourceVersion in obj it is refused as a Conflict if the stored one differs; without one
	// it overwrites. The error is NotFound if there is none, and Invalid as in Create.
	Update(ctx context.Context, obj api.Object, opts WriteOptions) (api.Object, error)
	// Patch changes an object and returns it as stored. The errors are those of Update, BadRequest for a patch that
	// cannot be read, and Conflict, for an apply, with the fields that others manage.
	Patch(ctx context.Context, key Key, patch Patch, opts WriteOptions) (api.Object, error)
	// Delete starts the deletion. It returns the object as it now stands, with a deletionTimestamp while finalizers or a
	// grace period delay its end. Of an object that is gone only kind, namespace, name and UID are sure. opts may be
	// nil. The error is NotFound if there is none, and Conflict if it is not the one that opts names.
	Delete(ctx context.Context, key Key, opts *metav1.DeleteOptions) (api.Object, error)
	// DeleteCollection deletes the objects that opts selects and returns them. What was deleted before an error stays
	// deleted.
	DeleteCollection(ctx context.Context, kind *api.Kind, opts ListOptions, del *metav1.DeleteOptions) (*List, error)
	// Bind binds a pod to a node (pods/binding). The error is a Conflict if the pod already has a node.
	Bind(ctx context.Context, namespace, pod string, uid types.UID, node string) error
	// Scale reads how many pods an object has and wants: its subresource scale. The error is NotFound if there is none, or if
	// objects of the kind are not scaled.
	Scale(ctx context.Context, key Key) (*autoscalingv1.Scale, error)
	// SetScale changes how many pods an object wants, and returns its Scale as stored. The errors are those of Scale and
	// Update.
	SetScale(ctx context.Context, key Key, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error)
	// Token makes a token of a service account, as the request asks: serviceaccounts/token. Its status holds the
	// token and when it expires.
	Token(ctx context.Context, namespace, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
}

// ListOptions selects objects.
type ListOptions struct {
	Namespace string // empty: all namespaces
	Labels    labels.Selector
	Fields    fields.Selector
	// Limit is how many to return at most; 0 means all. Continue is List.Continue of the previous page; all pages of
	// a list are of one revision.
	Limit    int64
	Continue string
}

// List is a page of objects at one revision, in the order of namespace and name.
type List struct {
	Kind            *api.Kind
	ResourceVersion string
	Items           []api.Object
	Continue        string
	Remaining       *int64
}

// WatchOptions says what to watch and from when.
type WatchOptions struct {
	Namespace string
	Labels    labels.Selector
	Fields    fields.Selector
	// ResourceVersion is where to resume: changes after it are sent. Empty means: first every object that exists, as
	// Added, then the changes.
	ResourceVersion string
	// Bookmarks asks for a Bookmark now and then, and one right after the initial objects.
	Bookmarks bool
}

// EventType is what happened to an object.
type EventType = api.EventType

// The types of events.
const (
	Added    = api.Added
	Modified = api.Modified
	Deleted  = api.Deleted
	Bookmark = api.Bookmark
)

// Event is one change. For Deleted, Object is the last state, with the revision of the deletion.
type Event struct {
	Type            EventType
	Object          api.Object // nil for Bookmark
	ResourceVersion string
	// InitialEnd marks the Bookmark after the initial objects.
	InitialEnd bool
}

// Watcher is an open watch.
type Watcher interface {
	// Events closes when the watch has ended; Err then says why (nil: it was stopped).
	Events() <-chan Event
	// Err is Expired (410) when the history is compacted: list again.
	Err() error
	Stop()
}

// WriteOptions are the options of a write.
type WriteOptions struct {
	Subresource     string // "status", or empty
	DryRun          bool
	FieldManager    string
	FieldValidation string // Strict, Warn or Ignore; empty: Warn
}

// Patch is a change of an object, of one of Kubernetes' four types. An apply needs WriteOptions.FieldManager.
type Patch struct {
	Type types.PatchType
	Data []byte
	// Force lets an apply take over fields that other managers have set to other values.
	Force bool
}

// Get is c.Get with the Go type of the kind: client.Get[*corev1.Pod](ctx, c, key).
func Get[T api.Object](ctx context.Context, c Interface, key Key) (T, error) {
	obj, err := c.Get(ctx, key)
	if err != nil {
		var none T
		return none, err
	}
	return obj.(T), nil
}

// All is c.List with the Go type of the kind; the items are shared, as in Interface.
func All[T api.Object](ctx context.Context, c Interface, kind *api.Kind, opts ListOptions) ([]T, string, error) {
	list, err := c.List(ctx, kind, opts)
	if err != nil {
		return nil, "", err
	}
	items := make([]T, len(list.Items))
	for i, obj := range list.Items {
		items[i] = obj.(T)
	}
	return items, list.ResourceVersion, nil
}
