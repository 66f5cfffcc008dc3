// Package apiservice keeps an APIService for each version of each API group that the cluster serves itself, and says of
// all APIServices whether they are available. Upstream these are kube-aggregator's autoregistration and its available
// controllers.
//
// It promises: a version that is served here has an APIService, which is made again when somebody deletes it; one that
// this package made goes when the version is served no more. One that somebody leads to a Service is left as it is.
//
// The condition Available has upstream's reasons: Local; ServiceNotFound, ServicePortError, EndpointsNotFound,
// MissingEndpoints, FailedDiscoveryCheck; Passed. The Service of an APIService is asked when the APIService, the Service
// or its endpoints change, and twice a minute as long as there is such an APIService; nobody is asked otherwise.
// Nothing is written while nothing changes.
//
// It reads APIServices, Services and EndpointSlices, and writes the first. roles runs it on the master that leads, and
// says what is served and how a Service is asked. It keeps nothing: after a kill -9 the first lists show what there is.
package apiservice
