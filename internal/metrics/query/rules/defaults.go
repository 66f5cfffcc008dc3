package rules

import "sync"

// Default are the rules where no file is given. A series with labels for Kubernetes objects is a metric of each of them, summed
// over all else; one with a namespace is an external metric, too. Counters (_total) are rates per second over two minutes,
// without that ending. Buckets of histograms are no metrics, nor what cAdvisor says of containers: that is in several
// scrapes and at several levels, and metrics.k8s.io has it.
var Default = sync.OnceValue(func() *Set {
	s, err := Parse([]byte(defaults))
	if err != nil {
		panic(err) // a mistake in the text below, which the test of this package finds
	}
	return s
})

const defaults = `
rules:
- seriesQuery: '{__name__=~".+_total",__name__!~"container_.+"}'
  resources: &objects
    overrides:
      namespace: {resource: namespace}
      pod: {resource: pod}
      service: {resource: service}
      node: {resource: node}
      deployment: {group: apps, resource: deployment}
      ingress: {group: networking.k8s.io, resource: ingress}
  name: {matches: "^(.+)_total$"}
  metricsQuery: sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)
- seriesQuery: '{__name__!~".+_total|.+_bucket|container_.+"}'
  resources: *objects
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: '{__name__=~".+_total",__name__!~"container_.+",namespace!=""}'
  resources: &namespace
    overrides:
      namespace: {resource: namespace}
  name: {matches: "^(.+)_total$"}
  metricsQuery: rate(<<.Series>>{<<.LabelMatchers>>}[2m])
- seriesQuery: '{__name__!~".+_total|.+_bucket|container_.+",namespace!=""}'
  resources: *namespace
  metricsQuery: <<.Series>>{<<.LabelMatchers>>}
`
