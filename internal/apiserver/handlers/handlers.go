package handlers

import (
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"minik8s/internal/aggregation"
	"minik8s/internal/apiserver/authentication"
	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/apiserver/flowcontrol"
	"minik8s/internal/apiserver/nodes"
	"minik8s/internal/registry"
)

// Config configures a handler.
type Config struct {
	Registry *registry.Registry
	Limiter  *flowcontrol.Limiter
	Nodes    *nodes.Handler
	// Connectors answer subresources that parts know of, by "PLURAL/SUBRESOURCE".
	Connectors map[string]aggregation.Connector
	// Watches counts the open watches.
	Watches prometheus.Gauge
	// WriteTimeout is how long a client may take to read a piece of an answer.
	WriteTimeout time.Duration
}

// Handler serves the kinds.
type Handler struct {
	reg          *registry.Registry
	limiter      *flowcontrol.Limiter
	nodes        *nodes.Handler
	connectors   map[string]aggregation.Connector
	watches      prometheus.Gauge
	writeTimeout time.Duration
}

// New makes a handler.
func New(c Config) *Handler {
	return &Handler{reg: c.Registry, limiter: c.Limiter, nodes: c.Nodes, connectors: c.Connectors, watches: c.Watches, writeTimeout: c.WriteTimeout}
}

// Serve is the one handler of every kind. It authorises the request before it reads anything, the body included.
func (h *Handler) Serve(c echo.Context) error {
	r, err := h.parse(c)
	if err != nil {
		return err
	}
	to, err := h.route(r)
	if err != nil {
		return err
	}
	name := r.name
	if to.verb == "list" || to.verb == "watch" || to.verb == "deletecollection" {
		if r.list, err = r.listOptions(); err != nil {
			return err
		}
		name = "" // the name in a watch of one object is in its field selector
	}
	r.ask = &registry.Request{User: authentication.User(c), Verb: to.verb,
		Kind: r.kind, View: r.view, Sub: r.sub, Below: r.path, Namespace: r.namespace, Name: name, Fields: r.list.Fields}
	ctx := c.Request().Context()
	if err := h.reg.Authorize(ctx, r.ask); err != nil {
		return err
	}
	if !to.foreign {
		if r.out.MediaType, err = encoding.NegotiateFor(r.served(), r.accept()); err != nil {
			return err
		}
	}
	leave, err := h.limiter.Enter(ctx, r.ask.User, h.weight(r, to), to.long)
	if err != nil {
		return err
	}
	defer leave()
	return to.serve(h, r)
}

// weight returns how many units of the limiter a request takes.
func (h *Handler) weight(r *request, to route) int64 {
	switch to.verb {
	case "list", "deletecollection":
		n := int64(h.reg.Count(r.kind))
		if r.list.Limit > 0 && r.list.Labels == nil && r.list.Fields == nil {
			n = min(n, r.list.Limit)
		}
		return flowcontrol.ListUnits(n)
	case "create", "update", "patch":
		n := r.Request().ContentLength
		if n < 0 || n > maxBody { // the length is unknown
			n = maxBody
		}
		return flowcontrol.BodyUnits(n)
	}
	return 1
}
