// Package openapi describes the kinds in OpenAPI, version 3 (a document per group and version) and version 2 (all in one).
// kubectl reads it for explain, for the merge keys of apply, and to learn that the server checks fields itself.
//
// It promises: the documents are made from the Go types when they are first asked for, and made again when another kind is
// served. apiserver calls it. Nothing of it survives the daemon.
//
// Its files: v3.go and v2.go are the documents, schema.go a Go type as a schema.
package openapi
