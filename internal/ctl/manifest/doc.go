// Package manifest reads manifests from files, folders, URLs and standard input, and writes what they say: apply, create,
// replace.
//
// It promises that a manifest is read as a whole before anything is sent; that manifests of the seed systems are taken as
// they are; that apply takes out what an earlier manifest said and this one does not, and leaves what others set; that
// nothing is deleted for a replacement that could not be created. A kill -9 in the middle leaves the documents before it
// written and those after it untouched; the same command again finishes the work.
//
// The commands of ctl call it, one document after the other. It keeps no state here: what was applied last is in an
// annotation of the object.
package manifest
