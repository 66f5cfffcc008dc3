// Package manifest reads manifests from files, folders, URLs and standard input, and writes them: apply, create,
// replace.
//
// It promises: a manifest is read completely before anything is sent. Manifests of the seed systems are accepted
// unchanged. Apply removes what the last manifest had and this one does not, and keeps what others set. Nothing is
// deleted for a replacement that could not be created. After a kill -9 in the middle, the documents before it are
// written and those after it are not; running the command again finishes the work.
//
// The commands of ctl call it, one document after the other. It keeps no state here: an annotation on the object holds
// what was last applied.
package manifest
