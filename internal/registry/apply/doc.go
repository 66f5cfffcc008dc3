// Package apply is server-side apply: which manager owns which field of an object, how a manager's new manifest
// changes it, and where two managers conflict. apimachinery's own field manager does the work; this package adds the
// schema that it needs and the rule for which objects are tracked.
//
// It promises: an object that was never applied carries no managedFields, and writing it costs nothing more; from its
// first apply on, each write records its manager. A conflict names the other managers and their fields (409). An
// apply that changes nothing returns the same object, timestamps included.
//
// The caller is registry. Its only state is the parsed schema, which is read when it is first needed: most clusters
// never need it.
package apply
