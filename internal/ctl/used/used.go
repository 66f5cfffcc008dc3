// Package used asks metrics.k8s.io what nodes and pods use, for the commands that show it. It needs the rights that any other
// client of that group needs. Packages top and get call it; it keeps nothing.
package used

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"minik8s/internal/ctl/session"
)

const group = "/apis/metrics.k8s.io/v1beta1"

// Nodes returns what the nodes use that a label selector selects; empty: all. Those that do not answer are missing.
func Nodes(ctx context.Context, s *session.Session, selector string) ([]v1beta1.NodeMetrics, error) {
	var list v1beta1.NodeMetricsList
	err := get(ctx, s, group+"/nodes", selector, &list)
	return list.Items, err
}

// Pods returns what the pods of a namespace use, empty: of all, that a label selector selects. Those that do not run, or
// have just been started, are missing.
func Pods(ctx context.Context, s *session.Session, namespace, selector string) ([]v1beta1.PodMetrics, error) {
	path := group + "/pods"
	if namespace != "" {
		path = group + "/namespaces/" + url.PathEscape(namespace) + "/pods"
	}
	var list v1beta1.PodMetricsList
	err := get(ctx, s, path, selector, &list)
	return list.Items, err
}

func get(ctx context.Context, s *session.Session, path, selector string, into any) error {
	query := url.Values{}
	if selector != "" {
		query.Set("labelSelector", selector)
	}
	resp, err := s.API.Do(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	return json.NewDecoder(resp.Body).Decode(into)
}
