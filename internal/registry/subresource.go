package registry

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/registry/authorization"
)

// Subresource is what a request below an object does. A row of Strategy.Subresources sets one of the three. The table
// of kinds says under which verbs it can be asked for.
type Subresource struct {
	// Part copies from given into obj the part of the object that a write below it may change, and names the mistakes
	// of the result.
	Part func(obj, given api.Object) field.ErrorList
	// Form has a part of the object read and written as an object of another kind.
	Form *Form
	// Action is done by a create.
	Action *Action
}

// Form is another shape in which a part of an object is read and written.
type Form struct {
	// Kind is the kind of that shape. It is never stored, so it is not in the table of kinds.
	Kind *api.Kind
	// Show returns an object in this form. The metadata are filled in by the registry.
	Show func(obj api.Object) api.Object
	// Take puts what given says into obj, or names the mistakes of given.
	Take func(obj, given api.Object) field.ErrorList
}

// Action is something done to an object, or made for it.
type Action struct {
	// Body returns an empty body, into which the request's is decoded.
	Body func() runtime.Object
	// Do does what the body asks. The request is authorised. What it returns is the answer; nil: that it was done.
	Do func(ctx context.Context, o Objects, q *Request, body runtime.Object, opts WriteOptions) (runtime.Object, error)
}

// Objects is what the registry offers to the code of single kinds: the actions below them, and the answers of reviews.
// They are called for a request that is authorised; what they do in its course is not judged again, and is under the
// same fence.
type Objects interface {
	// Read returns the newest version of an object. The error is 404 if it does not exist.
	Read(ctx context.Context, kind *api.Kind, namespace, name string) (api.Object, error)
	// Modify changes the object of a request, and repeats the change on a newer version if another write came first.
	Modify(ctx context.Context, q *Request, opts WriteOptions, change Change) (api.Object, error)
	// Delete is Registry.Delete.
	Delete(ctx context.Context, q *Request, opts *metav1.DeleteOptions) (e *Entry, removed bool, err error)
	// Authorizer decides who may do what.
	Authorizer() *authorization.Authorizer
	Now() time.Time
}

// Objects returns the registry's own objects, for code that asks for no user: the check of tokens.
func (r *Registry) Objects() Objects { return objects{r, nil} }

// objects writes under the fence of the request in the course of which it is used.
type objects struct {
	*Registry
	fence *Fence
}

func (o objects) Read(ctx context.Context, kind *api.Kind, namespace, name string) (api.Object, error) {
	e, err := o.read(ctx, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	return e.Object(), nil
}

func (o objects) Modify(ctx context.Context, q *Request, opts WriteOptions, change Change) (api.Object, error) {
	q.Fence = o.fence
	e, err := o.modify(ctx, q, opts, true, change)
	if err != nil {
		return nil, err
	}
	return e.Object(), nil
}

func (o objects) Delete(ctx context.Context, q *Request, opts *metav1.DeleteOptions) (e *Entry, removed bool, err error) {
	q.Fence = o.fence
	return o.Registry.Delete(ctx, q, opts)
}

func (o objects) Authorizer() *authorization.Authorizer { return o.authorizer }

func (o objects) Now() time.Time { return o.now() }

// Act does what a create below an object asks: binds a pod, evicts it, makes a token. The answer is nil if there is
// nothing to say but that it was done. The error is 404 if the kind has no such action; see package subresource for
// the errors of each.
func (r *Registry) Act(ctx context.Context, q *Request, body runtime.Object, opts WriteOptions) (runtime.Object, error) {
	if err := r.authorizeAs(ctx, "create", q); err != nil {
		return nil, err
	}
	action := r.Strategy(q.Kind).Subresources[q.Sub].Action
	if action == nil {
		return nil, apierrors.NewNotFound(q.Kind.GR(), q.Name+"/"+q.Sub)
	}
	return action.Do(ctx, objects{r, q.Fence}, q, body, opts)
}

// Ask answers a review: an object of one of api.Questions, which is returned with its status filled in. Every
// authenticated user may ask about itself. The errors are 400, 403 and 422.
func (r *Registry) Ask(ctx context.Context, q *Request, obj api.Object) (api.Object, error) {
	if err := r.authorizeAs(ctx, "create", q); err != nil {
		return nil, err
	}
	answer := r.Strategy(q.Kind).Answer
	if answer == nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("nothing answers a %s", q.Kind.Kind))
	}
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(q.Kind.GVK())
	return obj, answer(ctx, objects{r, q.Fence}, q, obj)
}
