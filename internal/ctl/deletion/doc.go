// Package deletion deletes objects, waits until they are gone, and knows which objects of a cluster users created.
//
// It promises that an object's dependents are deleted with it, and that objects which the system creates do not count
// as users' objects. ctl's commands and the replacing of manifests call it. It keeps no state: an interrupted wait does
// not stop the deletion.
package deletion
