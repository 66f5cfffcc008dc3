package query

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/prometheus/common/model"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/external_metrics/v1beta1"

	"minik8s/internal/aggregation"
)

func (s *Source) externalGroup() aggregation.Group {
	v := v1beta1.SchemeGroupVersion
	return aggregation.Group{Group: v.Group, Version: v.Version, Open: true, Resources: none, Discover: s.externalResources, Serve: s.serveExternal}
}

// externalResources tells discovery of the metrics.
func (s *Source) externalResources(ctx context.Context) ([]metav1.APIResource, bool) {
	names, current := s.external.names(ctx)
	var out []metav1.APIResource
	for _, m := range names {
		out = append(out, metav1.APIResource{Name: m.name, Namespaced: true, Kind: "ExternalMetricValueList", Verbs: metav1.Verbs{"get"}})
	}
	return out, current
}

// serveExternal answers namespaces/NS/METRIC.
func (s *Source) serveExternal(w http.ResponseWriter, r *aggregation.Request) error {
	gr := schema.GroupResource{Group: v1beta1.GroupName, Resource: r.Resource}
	if r.Verb != "get" && r.Verb != "list" {
		return apierrors.NewMethodNotSupported(gr, r.Verb)
	}
	if r.Namespace == "" || r.Name != "" {
		return apierrors.NewNotFound(gr, r.Name)
	}
	selector, _, err := r.Selectors()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	from, err := s.external.find(ctx, metric{name: r.Resource})
	if err != nil {
		return err
	}
	if from == nil {
		return notFound(gr, r.Resource, "")
	}
	query, err := from.rule.External(from.name, r.Namespace, selector)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	samples, err := s.ask(ctx, query)
	if err != nil {
		return err
	}
	list := &v1beta1.ExternalMetricValueList{TypeMeta: metav1.TypeMeta{Kind: "ExternalMetricValueList", APIVersion: v1beta1.SchemeGroupVersion.String()},
		Items: []v1beta1.ExternalMetricValue{}}
	slices.SortFunc(samples, func(a, b *model.Sample) int { return cmp.Compare(a.Metric.String(), b.Metric.String()) })
	for _, x := range samples {
		value, ok := quantity(x.Value)
		if !ok {
			continue
		}
		labels := make(map[string]string, len(x.Metric))
		for k, v := range x.Metric {
			labels[string(k)] = string(v)
		}
		list.Items = append(list.Items, v1beta1.ExternalMetricValue{MetricName: r.Resource, MetricLabels: labels,
			Timestamp: metav1.Time{Time: x.Timestamp.Time()}, Value: value})
	}
	return r.Send(w, list, nil)
}
