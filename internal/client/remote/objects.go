package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// Get reads one object.
func (c *Client) Get(ctx context.Context, key client.Key) (api.Object, error) {
	path, err := objectPath(key, "")
	if err != nil {
		return nil, err
	}
	data, err := c.read(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	return decode(key.Kind, data)
}

// List reads the objects of a kind.
func (c *Client) List(ctx context.Context, kind *api.Kind, opts client.ListOptions) (*client.List, error) {
	data, err := c.read(ctx, request{method: http.MethodGet, path: collectionPath(kind, opts.Namespace), query: listQuery(opts)})
	if err != nil {
		return nil, err
	}
	return decodeList(kind, data)
}

// Create stores a new object.
func (c *Client) Create(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	kind, obj, err := outgoing(obj)
	if err != nil {
		return nil, err
	}
	if err := client.CheckCreate(opts); err != nil {
		return nil, err
	}
	path := collectionPath(kind, client.Home(kind, obj.GetNamespace()))
	data, err := c.send(ctx, http.MethodPost, path, writeQuery(opts), obj)
	if err != nil {
		return nil, err
	}
	return decode(kind, data)
}

// Update replaces an object or its status.
func (c *Client) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	kind, obj, err := outgoing(obj)
	if err != nil {
		return nil, err
	}
	path, err := objectPath(keyOf(kind, obj), opts.Subresource)
	if err != nil {
		return nil, err
	}
	data, err := c.send(ctx, http.MethodPut, path, writeQuery(opts), obj)
	if err != nil {
		return nil, err
	}
	return decode(kind, data)
}

// Patch changes an object.
func (c *Client) Patch(ctx context.Context, key client.Key, patch client.Patch, opts client.WriteOptions) (api.Object, error) {
	path, err := objectPath(key, opts.Subresource)
	if err != nil {
		return nil, err
	}
	query := writeQuery(opts)
	if patch.Force {
		query.Set("force", "true")
	}
	data, err := c.read(ctx, request{
		method: http.MethodPatch, path: path, query: query,
		contentType: string(patch.Type), body: bytes.NewReader(patch.Data),
	})
	if err != nil {
		return nil, err
	}
	return decode(key.Kind, data)
}

// Delete starts the deletion of an object.
func (c *Client) Delete(ctx context.Context, key client.Key, opts *metav1.DeleteOptions) (api.Object, error) {
	path, err := objectPath(key, "")
	if err != nil {
		return nil, err
	}
	data, err := c.send(ctx, http.MethodDelete, path, nil, deleteBody(opts))
	if err != nil {
		return nil, err
	}
	if isStatus(data) {
		// The server answered only with a Status, so only the object's key and UID are known.
		obj := key.Kind.New()
		obj.SetUID(statusUID(data))
		obj.SetNamespace(key.Namespace)
		obj.SetName(key.Name)
		obj.GetObjectKind().SetGroupVersionKind(key.Kind.GVK())
		return obj, nil
	}
	return decode(key.Kind, data)
}

// DeleteCollection deletes all that opts selects.
func (c *Client) DeleteCollection(ctx context.Context, kind *api.Kind, opts client.ListOptions, del *metav1.DeleteOptions) (*client.List, error) {
	data, err := c.send(ctx, http.MethodDelete, collectionPath(kind, opts.Namespace), listQuery(opts), deleteBody(del))
	if err != nil {
		return nil, err
	}
	if isStatus(data) {
		return &client.List{Kind: kind}, nil
	}
	return decodeList(kind, data)
}

// Bind gives a pod its node.
func (c *Client) Bind(ctx context.Context, namespace, pod string, uid types.UID, node string) error {
	path, err := objectPath(client.Key{Kind: api.Pods, Namespace: namespace, Name: pod}, "binding")
	if err != nil {
		return err
	}
	_, err = c.send(ctx, http.MethodPost, path, nil, &corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, UID: uid},
		Target:     corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node},
	})
	return err
}

// Scale reads how many pods an object has and wants.
func (c *Client) Scale(ctx context.Context, key client.Key) (*autoscalingv1.Scale, error) {
	path, err := objectPath(key, api.ScaleSubresource)
	if err != nil {
		return nil, err
	}
	data, err := c.read(ctx, request{method: http.MethodGet, path: path})
	return decodeScale(data, err)
}

// SetScale changes how many pods an object wants.
func (c *Client) SetScale(ctx context.Context, key client.Key, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	path, err := objectPath(key, api.ScaleSubresource)
	if err != nil {
		return nil, err
	}
	body := scale.DeepCopy()
	body.TypeMeta = metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"}
	data, err := c.send(ctx, http.MethodPut, path, nil, body)
	return decodeScale(data, err)
}

func decodeScale(data []byte, err error) (*autoscalingv1.Scale, error) {
	if err != nil {
		return nil, err
	}
	out := &autoscalingv1.Scale{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("the server's answer is no Scale: %w", err)
	}
	return out, nil
}

// Token makes a token of a service account.
func (c *Client) Token(ctx context.Context, namespace, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	path, err := objectPath(client.Key{Kind: api.ServiceAccounts, Namespace: namespace, Name: serviceAccount}, "token")
	if err != nil {
		return nil, err
	}
	body := req.DeepCopy()
	body.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
	data, err := c.send(ctx, http.MethodPost, path, nil, body)
	if err != nil {
		return nil, err
	}
	out := &authenticationv1.TokenRequest{}
	return out, json.Unmarshal(data, out)
}

// outgoing is an object with its kind set, which structs in memory often lack.
func outgoing(obj api.Object) (*api.Kind, api.Object, error) {
	kind, err := client.KindFor(obj)
	if err != nil {
		return nil, nil, err
	}
	if obj.GetObjectKind().GroupVersionKind() == kind.GVK() {
		return kind, obj, nil
	}
	out, ok := obj.DeepCopyObject().(api.Object)
	if !ok {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("%T has no metadata", obj))
	}
	out.GetObjectKind().SetGroupVersionKind(kind.GVK())
	return kind, out, nil
}

func keyOf(kind *api.Kind, obj api.Object) client.Key {
	return client.Key{Kind: kind, Namespace: client.Home(kind, obj.GetNamespace()), Name: obj.GetName()}
}

func deleteBody(opts *metav1.DeleteOptions) *metav1.DeleteOptions {
	body := metav1.DeleteOptions{}
	if opts != nil {
		body = *opts
	}
	body.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	return &body
}

// CreateRaw stores a new object from a manifest as it was written, without decoding it here: the server handles the
// seed systems' dialects and unknown fields.
func (c *Client) CreateRaw(ctx context.Context, kind *api.Kind, namespace string, doc []byte, opts client.WriteOptions) (api.Object, error) {
	data, err := c.read(ctx, request{
		method: http.MethodPost, path: collectionPath(kind, client.Home(kind, namespace)), query: writeQuery(opts),
		contentType: jsonType, body: bytes.NewReader(doc),
	})
	if err != nil {
		return nil, err
	}
	return decode(kind, data)
}
