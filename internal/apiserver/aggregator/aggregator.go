package aggregator

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/aggregation"
	"minik8s/internal/apiserver/flowcontrol"
	"minik8s/internal/registry"
)

// Config configures an aggregator.
type Config struct {
	Registry *registry.Registry
	Limiter  *flowcontrol.Limiter
	// Local are the groups that are answered in process, no group and version twice, in the order of discovery.
	Local []aggregation.Group
	// WriteTimeout is how long a client may take to read a piece of an answer that lasts.
	WriteTimeout time.Duration
}

// Aggregator serves groups that are not stored.
type Aggregator struct {
	cfg   Config
	local map[schema.GroupVersion]*aggregation.Group
}

// New returns an aggregator.
func New(cfg Config) *Aggregator {
	a := &Aggregator{cfg: cfg, local: map[schema.GroupVersion]*aggregation.Group{}}
	for i := range cfg.Local {
		g := &cfg.Local[i]
		a.local[schema.GroupVersion{Group: g.Group, Version: g.Version}] = g
	}
	return a
}
