// Package apply is server-side apply: who manages which field of an object, what a manager's new manifest makes of
// it, and where two managers disagree. The work is apimachinery's own field manager; here are the schema it needs
// and the rule for whom it keeps book.
//
// It promises: an object that nobody has applied carries no managedFields, and writing it costs nothing more; from
// its first apply on, each write notes its manager. A conflict names the other managers and their fields (409). What
// changes nothing gives the same object back, times included.
//
// The caller is registry. It keeps no state but the parsed schema, which is read when it is first needed: most
// clusters never need it.
package apply
