// Package decode turns a client's bytes into an object: YAML or JSON, a seed's dialect, strict fields.
//
// It promises: a document that cannot be read is refused with the path of every part that does not fit, what is
// expected there and what was given; unknown fields and fields given twice are refused, warned about or ignored as
// the client asks; code after this package does not know about dialects.
//
// Callers are registry and apiserver's handlers. It has no state.
//
// Its files: decode.go reads, explain.go says why something could not be read.
package decode
