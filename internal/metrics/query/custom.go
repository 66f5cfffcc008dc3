package query

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/metrics/query/rules"
)

// everything is the name that stands for all objects.
const everything = "*"

// Groups are the groups that the source answers, for the API server.
func (s *Source) Groups() []aggregation.Group {
	custom := func(version schema.GroupVersion, list func([]v1beta2.MetricValue) runtime.Object) aggregation.Group {
		return aggregation.Group{Group: version.Group, Version: version.Version, Open: true, Resources: none, Discover: s.customResources,
			Serve: func(w http.ResponseWriter, r *aggregation.Request) error {
				values, err := s.serveCustom(r)
				if err != nil {
					return err
				}
				return r.Send(w, list(values), nil)
			}}
	}
	return []aggregation.Group{custom(v1beta2.SchemeGroupVersion, newForm), custom(v1beta1.SchemeGroupVersion, oldForm), s.externalGroup()}
}

// none is what is known of the resources of an open group without asking.
func none() []metav1.APIResource { return nil }

func newForm(values []v1beta2.MetricValue) runtime.Object {
	return &v1beta2.MetricValueList{TypeMeta: metav1.TypeMeta{Kind: "MetricValueList", APIVersion: v1beta2.SchemeGroupVersion.String()}, Items: values}
}

func oldForm(values []v1beta2.MetricValue) runtime.Object {
	list := &v1beta1.MetricValueList{TypeMeta: metav1.TypeMeta{Kind: "MetricValueList", APIVersion: v1beta1.SchemeGroupVersion.String()}, Items: []v1beta1.MetricValue{}}
	for _, v := range values {
		list.Items = append(list.Items, v1beta1.MetricValue{DescribedObject: v.DescribedObject, MetricName: v.Metric.Name, Timestamp: v.Timestamp,
			WindowSeconds: v.WindowSeconds, Value: v.Value, Selector: v.Metric.Selector})
	}
	return list
}

// customResources tells discovery of the metrics: "pods/http_requests".
func (s *Source) customResources(ctx context.Context) ([]metav1.APIResource, bool) {
	names, current := s.custom.names(ctx)
	var out []metav1.APIResource
	for _, m := range names {
		k := rules.Find(s.cfg.Kinds().Stored(), m.of.Group, m.of.Resource)
		out = append(out, metav1.APIResource{Name: m.of.String() + "/" + m.name, Namespaced: k != nil && k.Namespaced,
			Kind: "MetricValueList", Verbs: metav1.Verbs{"get"}})
	}
	return out, current
}

// question is what is asked of a custom metric.
type question struct {
	resource        schema.GroupResource // as the path has it
	namespace, name string
	metric          string
	objects, series labels.Selector
}

// readCustom reads a request. The paths are
//
//	namespaces/NS/RESOURCE/NAME/METRIC, RESOURCE/NAME/METRIC, namespaces/NS/metrics/METRIC and namespaces/NS/METRIC,
//
// of which the last two are about the namespace itself.
func readCustom(r *aggregation.Request) (q question, err error) {
	switch {
	case r.Verb != "get" && r.Verb != "list":
		return q, apierrors.NewMethodNotSupported(schema.GroupResource{Group: v1beta2.GroupName, Resource: r.Resource}, r.Verb)
	case r.Subresource != "":
		q = question{resource: schema.ParseGroupResource(r.Resource), namespace: r.Namespace, name: r.Name, metric: r.Subresource}
	case r.Namespace != "" && r.Name == "":
		q = question{resource: api.Namespaces.GR(), name: r.Namespace, metric: r.Resource}
	case r.Namespace != "" && r.Resource == "metrics":
		q = question{resource: api.Namespaces.GR(), name: r.Namespace, metric: r.Name}
	default:
		return q, apierrors.NewNotFound(schema.GroupResource{Group: v1beta2.GroupName, Resource: r.Resource}, r.Name)
	}
	if q.objects, _, err = r.Selectors(); err != nil {
		return q, err
	}
	if q.series, err = labels.Parse(r.Query.Get("metricLabelSelector")); err != nil {
		return q, apierrors.NewBadRequest("metricLabelSelector: " + err.Error())
	}
	return q, nil
}

func (s *Source) serveCustom(r *aggregation.Request) ([]v1beta2.MetricValue, error) {
	q, err := readCustom(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	kind := rules.Find(s.cfg.Kinds().Stored(), q.resource.Group, q.resource.Resource)
	if kind == nil || kind.Namespaced != (q.namespace != "") {
		return nil, notFound(q.resource, q.metric, "")
	}
	from, err := s.custom.find(ctx, metric{kind.GR(), q.metric})
	if err != nil {
		return nil, err
	}
	if from == nil {
		return nil, notFound(q.resource, q.metric, "")
	}
	names := []string{q.name}
	if q.name == everything {
		if names, err = s.objects(ctx, kind, q.namespace, q.objects); err != nil {
			return nil, err
		}
	}
	values := []v1beta2.MetricValue{}
	if len(names) > 0 {
		if values, err = s.values(ctx, from, &q, names); err != nil {
			return nil, err
		}
	}
	if q.name != everything && len(values) == 0 {
		return nil, notFound(q.resource, q.metric, q.name)
	}
	return values, nil
}

// objects are the names of the objects that are selected, in order.
func (s *Source) objects(ctx context.Context, k *api.Kind, namespace string, which labels.Selector) (names []string, err error) {
	list, err := s.cfg.Objects(ctx, k, client.ListOptions{Namespace: namespace, Labels: which})
	if err != nil {
		return nil, err
	}
	for _, o := range list.Items {
		names = append(names, o.GetName())
	}
	return names, nil
}

// values are those of the objects that have one, in the order of their names.
func (s *Source) values(ctx context.Context, from *series, q *question, names []string) ([]v1beta2.MetricValue, error) {
	text, label, err := from.rule.Custom(from.name, from.kind, q.namespace, names, q.series)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	samples, err := s.ask(ctx, text)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*model.Sample, len(samples))
	for _, x := range samples {
		byName[string(x.Metric[model.LabelName(label)])] = x
	}
	identifier := v1beta2.MetricIdentifier{Name: q.metric}
	if !q.series.Empty() {
		if identifier.Selector, err = metav1.ParseToLabelSelector(q.series.String()); err != nil {
			return nil, apierrors.NewBadRequest("metricLabelSelector: " + err.Error())
		}
	}
	out := []v1beta2.MetricValue{}
	slices.Sort(names)
	for _, name := range names {
		x := byName[name]
		if x == nil {
			continue
		}
		value, ok := quantity(x.Value)
		if !ok {
			continue
		}
		out = append(out, v1beta2.MetricValue{Metric: identifier, Timestamp: metav1.Time{Time: x.Timestamp.Time()}, Value: value,
			DescribedObject: corev1.ObjectReference{Kind: from.kind.Kind, APIVersion: from.kind.APIVersion(), Namespace: q.namespace, Name: name}})
	}
	return out, nil
}

// notFound is 404, in the words of Kubernetes' library for metrics. name may be empty: of all objects.
func notFound(of schema.GroupResource, metric, name string) error {
	msg := fmt.Sprintf("the server could not find the metric %s for %s", metric, of.String())
	if name != "" {
		msg += " " + name
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: msg}}
}
