// Package validation holds Kubernetes' rules for the objects that minik8s serves.
//
// It promises every mistake of an object at once, each with the path of its field and what would be
// right instead, and never a panic, whatever the object holds. It expects objects that package defaults
// has filled in. NotServed is apart from the rules: it names fields that are right in Kubernetes and
// that this version of minik8s does not act on, so that nothing is ignored silently.
//
// Package registry calls it on every write. It imports only the wire types, holds no state and does
// no I/O.
package validation
