// Package scrape says what a node uses in Prometheus' text format, under the names that public dashboards and rules ask
// for:
//
//	Containers   cAdvisor's metrics, as the kubelet's /metrics/cadvisor has them
//	Resources    the kubelet's /metrics/resource
//	Machine      node-exporter's metrics of the machine
//
// It keeps nothing between calls. The server of the kubelet calls it.
package scrape
