package aggregator

import (
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/apiserver/flowcontrol"
	"minik8s/internal/registry"
)

// Config configures an aggregator.
type Config struct {
	Registry *registry.Registry
	Limiter  *flowcontrol.Limiter
	// Local are the groups that are answered in process, no group and version twice, in the order of discovery.
	Local []aggregation.Group
	// Services reaches the Services that serve groups; nil: none can be reached.
	Services *Services
	// RequestTimeout is how long a Service may take to answer; 0: a minute. Watches and streams may take any time.
	RequestTimeout time.Duration
	// WriteTimeout is how long a client may take to read a piece of an answer that lasts.
	WriteTimeout time.Duration
	Log          *slog.Logger
}

// Aggregator serves groups that are not stored.
type Aggregator struct {
	cfg   Config
	local map[schema.GroupVersion]*aggregation.Group

	mu   sync.Mutex
	said map[string]*said // by the APIService's name
}

// New returns an aggregator.
func New(cfg Config) *Aggregator {
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = requestTimeout
	}
	a := &Aggregator{cfg: cfg, local: map[schema.GroupVersion]*aggregation.Group{}, said: map[string]*said{}}
	for i := range cfg.Local {
		g := &cfg.Local[i]
		a.local[schema.GroupVersion{Group: g.Group, Version: g.Version}] = g
	}
	return a
}

// service returns the APIService that leads a group and version to a Service; nil if there is none. What is stored is
// never led elsewhere.
func (a *Aggregator) service(gv schema.GroupVersion) *apiregistrationv1.APIService {
	if a.cfg.Registry.Kinds().Has(gv) {
		return nil
	}
	found, _ := a.cfg.Registry.Cached(api.APIServices, "", api.APIServiceName(gv)).(*apiregistrationv1.APIService)
	if found == nil || found.Spec.Service == nil {
		return nil
	}
	return found
}
