// Package decode is the way from a client's bytes to an object: YAML or JSON, a seed's dialect, strict fields.
//
// It promises: a document that cannot be read is refused with the path of every part that does not fit, what belongs there
// and what was given; fields that the kind does not have, and fields given twice, are refused, warned about or ignored
// as the client asks; nothing past it knows that dialects exist.
//
// Callers are registry and apiserver's handlers. It has no state.
//
// Its files: decode.go reads, explain.go says why something could not be read.
package decode
