// Package openapi describes the kinds in OpenAPI, version 3 (a document per group and version) and version 2 (all in
// one). kubectl reads it for explain, for the merge keys of apply, and to find out that the server validates fields
// itself.
//
// It promises: the documents are made from the Go types when they are first requested, and made again when another
// kind is served. apiserver calls it. Its state is lost with the daemon.
//
// Its files: paths.go follows the table of kinds, its verbs and subresources; v3.go and v2.go make the documents,
// schema.go turns a Go type into a schema.
package openapi
