package remote

import (
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

func collectionPath(kind *api.Kind, namespace string) string {
	path := "/api/" + kind.Version
	if kind.Group != "" {
		path = "/apis/" + kind.Group + "/" + kind.Version
	}
	if kind.Namespaced && namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	return path + "/" + kind.Plural
}

func objectPath(key client.Key, subresource string) (string, error) {
	if key.Name == "" {
		// An empty name would be the path of the collection, and a delete of everything.
		return "", apierrors.NewBadRequest("a name is needed for " + key.Kind.String())
	}
	path := collectionPath(key.Kind, client.Home(key.Kind, key.Namespace)) + "/" + url.PathEscape(key.Name)
	if subresource != "" {
		path += "/" + subresource
	}
	return path, nil
}

func listQuery(opts client.ListOptions) url.Values {
	q := url.Values{}
	if opts.Labels != nil && !opts.Labels.Empty() {
		q.Set("labelSelector", opts.Labels.String())
	}
	if opts.Fields != nil && !opts.Fields.Empty() {
		q.Set("fieldSelector", opts.Fields.String())
	}
	if opts.Limit > 0 {
		q.Set("limit", strconv.FormatInt(opts.Limit, 10))
	}
	if opts.Continue != "" {
		q.Set("continue", opts.Continue)
	}
	return q
}

func writeQuery(opts client.WriteOptions) url.Values {
	q := url.Values{}
	if opts.DryRun {
		q.Set("dryRun", metav1.DryRunAll)
	}
	if opts.FieldManager != "" {
		q.Set("fieldManager", opts.FieldManager)
	}
	if opts.FieldValidation != "" {
		q.Set("fieldValidation", opts.FieldValidation)
	}
	return q
}
