// Package query answers what autoscalers ask beyond cpu and memory, from a Prometheus: the API groups custom.metrics.k8s.io
// (of a Kubernetes object) and external.metrics.k8s.io (of anything). Types and paths are those of k8s.io/metrics, the words
// of what is not found those of Kubernetes' library for such servers. Which series is which metric is said by rules in the
// form of prometheus-adapter; see package rules.
//
// It promises: Prometheus is asked when somebody asks here, and not otherwise. An answer takes five seconds at most. What
// metrics there are is remembered for half a minute, and asked again at once about one that is not among them, but not more
// than once a second. A value that is no number (NaN, an infinity, a series that ended) is missing; all others have the
// precision of a thousandth. Of the objects that a question is about only names are read. Where Prometheus is silent, or
// refuses the query of a rule, the answer is 503 or 500 with the reason; its password and token are in no answer.
//
// No part of a question becomes part of a query but as a label's quoted value. A series or a label of which the name cannot
// be written without quotes, as Prometheus 3 allows, is no metric here.
//
// roles makes a Source on each master that has the setting prometheus. It remembers in memory alone, for ten minutes after the
// last question, so nothing of it survives the daemon.
//
// Its files: source.go asks Prometheus, catalog.go knows which metrics there are, custom.go and external.go are the groups.
package query
