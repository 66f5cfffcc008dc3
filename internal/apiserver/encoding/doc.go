// Package encoding turns objects, lists, watch events and errors into bytes, as the client's Accept header asks:
// JSON, YAML or Kubernetes' protobuf; whole objects, their metadata, or rows of a Table.
//
// It promises: answers are encoded only here; a plain object is sent as the stored bytes, without being decoded; a
// list is encoded item by item and never held as a whole; an Accept header that names only unserved media types is an
// error (406), and no header means JSON.
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
