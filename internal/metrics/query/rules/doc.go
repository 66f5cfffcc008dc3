// Package rules says which metrics a Prometheus has for autoscalers, and how each is asked for. The form is the
// configuration of kubernetes-sigs/prometheus-adapter, since people have such files: rules for metrics of Kubernetes objects,
// externalRules for all others. Its resourceRules are read and not used: metrics.k8s.io is not answered from Prometheus.
//
// A rule selects series (seriesQuery, seriesFilters), names a metric after each (name), says which labels are Kubernetes
// objects (resources) and has a template of the query (metricsQuery, between << and >>).
//
// It promises: a file that it accepts has no rule that cannot be asked; an error names the field and what is expected. All
// values that come from a question are quoted in a query, or refused, so that they cannot change its meaning; templates are
// the operator's and are trusted.
//
// Package query uses it. It is pure: the same input gives the same queries, and nothing is kept.
package rules
