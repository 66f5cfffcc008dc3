package aggregation

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Group is one version of an API group that is answered in process.
type Group struct {
	Group, Version string
	// Resources says which resources and subresources ("pods/http_requests") there are at this moment, with their verbs.
	// It is asked for every request and every discovery, by several goroutines at once, and must not block.
	Resources func() []metav1.APIResource
	// Discover, if set, says in the place of Resources what clients are told in discovery, and may take a while for that; current
	// is false if it is not known for sure at this moment.
	Discover func(ctx context.Context) (list []metav1.APIResource, current bool)
	// Open has Serve see requests for other resources too, and refuse those that do not exist: there may be more than
	// Resources can name. Otherwise they are not found (404).
	Open bool
	// Serve answers a request, by Request.Send or, for a watch, by writing to w itself. An error that is a Status
	// (apierrors.NewNotFound) is sent as that, any other one is internal (500).
	Serve func(w http.ResponseWriter, r *Request) error
}

// Request is one authorised request for something in a group.
type Request struct {
	*http.Request
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Resource is the plural, and Subresource what follows the name, which may both be empty.
	Resource, Subresource string
	// Namespace is empty for all namespaces, and for what is in none. Name is empty for a collection.
	Namespace, Name string
	// Query is the query of the URL.
	Query url.Values
	// Encode turns an object into the body that the client asked for; see Send. The API server sets it.
	Encode func(obj runtime.Object, table func() *metav1.Table) (contentType string, body []byte, err error)
}

// Selectors returns the request's selectors; without any, they select everything. The error is 400.
func (r *Request) Selectors() (labels.Selector, fields.Selector, error) {
	l, err := labels.Parse(r.Query.Get("labelSelector"))
	if err != nil {
		return nil, nil, apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	f, err := fields.ParseSelector(r.Query.Get("fieldSelector"))
	if err != nil {
		return nil, nil, apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	return l, f, nil
}

// Send answers with an object or a list, whose kind and apiVersion are set, in JSON or YAML. A client may ask for a
// Table instead; table makes it, with each row's whole object in Row.Object.Object, of which the client gets as much
// as it wants. A nil table: the objects have no columns, and the client gets them as they are, or a refusal (406) if it
// takes nothing else.
func (r *Request) Send(w http.ResponseWriter, obj runtime.Object, table func() *metav1.Table) error {
	contentType, body, err := r.Encode(obj, table)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	w.Write(body) //nolint:errcheck // a client that has disconnected needs no answer
	return nil
}
