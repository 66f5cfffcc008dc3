package roles

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/metrics"
	"minik8s/internal/metrics/query"
	"minik8s/internal/registry"
	"minik8s/internal/scheduler"
)

// nodeMetrics is what answers for metrics.k8s.io on this master.
func (d *Daemon) nodeMetrics() *metrics.API {
	d.makeUsage.Do(func() {
		reader := d.as(registry.Part("metrics"))
		d.usage = &metrics.API{Client: reader, Collector: metrics.New(metrics.Config{Kubelets: d.kubelets(), CAdvisor: d.cfg.CAdvisor,
			Window: d.cfg.MetricsWindow, Log: d.log,
			Address: func(ctx context.Context, node string) (string, error) { return nodeAddress(ctx, reader, node) }})}
	})
	return d.usage
}

// nodesUsage is what nodes use, for the scheduler.
func (d *Daemon) nodesUsage(ctx context.Context, nodes []string) map[string]scheduler.Usage {
	known, err := d.nodeMetrics().Collector.Nodes(ctx, nodes)
	if err != nil {
		return nil // ctx has ended
	}
	out := make(map[string]scheduler.Usage, len(known))
	for name, n := range known {
		if !n.Usage.Time.IsZero() {
			out[name] = scheduler.Usage{CPUMillis: int64(n.Usage.CPU * 1000), MemoryBytes: int64(n.Usage.Memory)}
		}
	}
	return out
}

// newMetricsSource reads what the settings of Prometheus name; nil without the setting.
func (d *Daemon) newMetricsSource() (*query.Source, error) {
	c := d.cfg
	if c.Prometheus == "" {
		return nil, nil //nolint:nilnil // that is how no setting is told
	}
	part := registry.Part("metrics-query")
	return query.New(query.Config{URL: c.Prometheus, TokenFile: c.PrometheusTokenFile, CAFile: c.PrometheusCAFile, RulesFile: c.PrometheusRules,
		Objects: func(ctx context.Context, k *api.Kind, o client.ListOptions) (*client.List, error) {
			return d.as(part).List(ctx, k, o)
		},
		Kinds: func() *api.Table { return d.reg.Kinds() }, Log: d.log})
}

// nodeAddress is a node's internal address; it is an error if it has none.
func nodeAddress(ctx context.Context, c client.Interface, name string) (string, error) {
	obj, err := c.Get(ctx, client.Key{Kind: api.Nodes, Name: name})
	if err != nil {
		return "", err
	}
	for _, a := range obj.(*corev1.Node).Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address, nil
		}
	}
	return "", fmt.Errorf("node %s has no internal address", name)
}

// ownAPI asks this master's API server as any client would, so that an APIService may lead to another one. It has the rights of
// a part of the daemon.
type ownAPI struct {
	socket, part string

	once sync.Once
	api  *remote.Client
	err  error
}

// Get implements metricsapi.Getter.
func (o *ownAPI) Get(ctx context.Context, path string, query url.Values, into any) error {
	o.once.Do(func() { o.api, o.err = remote.New(remote.Config{Socket: o.socket, As: registry.Part(o.part).Name}) })
	if o.err != nil {
		return o.err
	}
	resp, err := o.api.Do(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	return json.NewDecoder(resp.Body).Decode(into)
}
