// Package encoding is how objects, lists, events of watches and errors become bytes, as the client asks for them in its
// Accept header: JSON, YAML or Kubernetes' protobuf; whole objects, their metadata, or rows of a Table.
//
// It promises: this is the only place where an answer's bytes are made; a plain object goes out as the bytes that are
// stored, without being decoded; a list is encoded item by item and never held as a whole;
// an Accept header that names only what is not served is an error (406), and none at all means JSON.
//
// Callers are apiserver and its handlers. It has no state.
//
// Its files:
//
//	negotiate.go    the Accept header
//	object.go       one object, one event of a watch, one row of a Table
//	list.go protolist.go    a list, piece by piece
//	status.go       an error as a Status
package encoding
