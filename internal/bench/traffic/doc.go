// Package traffic measures the ways of packets and requests: between pods, to Services, past policies, by names and through the
// gateway.
//
//	network.go   network: pods on two hosts, with links alone: no API
//	services.go  services: from the POST of a Service to the first connection, and what many of them cost
//	policies.go  policies: from the POST of a NetworkPolicy to its effect, and what many of them cost
//	dns.go       dns: answers a second, beside a stock CoreDNS
//	gateway.go   gateway: requests a second, beside nginx
//	flush.go     flush: until a port answers again after the host has lost all its rules
//
// The command bench calls it, with one function for each part. Nothing stays behind: each part removes the daemon, links and
// namespaces that it has made.
package traffic
