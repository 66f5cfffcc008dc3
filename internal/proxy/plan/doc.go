// Package plan decides what one node does with each Service: which of its addresses lead to which endpoints.
//
// It is pure, one Service at a time: the same Service, slices and node give the same plan. It follows Kubernetes' rules:
//
//   - An endpoint that is ready gets connections. While none is, those that end but still serve get them.
//   - internalTrafficPolicy and externalTrafficPolicy Local leave the endpoints of this node; where there is none, connections
//     are dropped, so that a load balancer looks elsewhere. Without any endpoint at all they are rejected.
//   - Hints of the slices (from trafficDistribution) narrow the endpoints to those for this node, or for its zone, where
//     all endpoints have hints and one is for it.
//
// Who calls it: package proxy. Nothing of it survives, and nothing needs to.
package plan
