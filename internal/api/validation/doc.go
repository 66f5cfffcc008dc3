// Package validation holds Kubernetes' rules for the objects that minik8s serves.
//
// It promises to report all mistakes of an object at once, each with the path of its field and what would be right, and
// never to panic, whatever the object holds. It expects objects that package defaults has filled in. NotServed is
// separate from these rules: it reports fields that are valid in Kubernetes but that this version of minik8s does not
// support, so that nothing is ignored silently.
//
// Package registry calls it on every write. It imports only the wire types, holds no state and does no I/O.
package validation
