// Package plan says what a NetworkPolicy means for packets: which pods it isolates, and whom and what its rules let
// through, as selectors, ranges of IPv4 addresses and ports. It is pure and knows neither the kernel nor the API.
//
// Who calls it: policy, with each NetworkPolicy and each pod. Nothing is kept between calls.
//
// The meaning is that of Kubernetes (networking.k8s.io/v1, NetworkPolicySpec). What IPv4 has no use for, ranges of IPv6
// addresses, lets nobody in, and Policy.Ignored names it.
package plan
