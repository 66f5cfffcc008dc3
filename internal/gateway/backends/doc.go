// Package backends knows the endpoints of the Services that the gateway's routes lead to: which of them is next, and which
// are skipped for a while because they failed.
//
// Who calls it: package gateway, which tells it of Services and EndpointSlices; it reads no API. Requests ask a Pool while it
// is changed; they take no lock, but for a moment where the Service has sessionAffinity ClientIP: then a client stays with its
// endpoint for as long as the Service says, and its address alone chooses the first one, so that all gateways choose alike. An endpoint is the same in every pool that has it, so that all learn from one failure.
// Nothing survives.
package backends
