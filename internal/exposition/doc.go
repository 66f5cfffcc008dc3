// Package exposition writes pages in Prometheus' text format, version 0.0.4: what is measured of a node and its containers,
// and what the API server says of objects.
//
// It writes the text itself: with the types of a metrics library a hundred pods take ten times as long, and such pages are
// read every few seconds. It promises: labels are escaped, and a page of any length needs little memory where it is
// written to a client as it grows. Callers begin each family once, and give no two samples of it the same labels.
//
// The kubelet's stats and the API server's objectmetrics call it. It has no state.
package exposition
