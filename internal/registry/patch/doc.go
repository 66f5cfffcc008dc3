// Package patch changes a document by a JSON patch, a merge patch or a strategic merge patch. Server-side apply,
// which must track field owners, is package apply.
//
// It promises: it is pure, bytes in and bytes out; a patch is bounded in its number of operations and in the total
// size of its copies; a patch that would make a library panic is refused with the path of the mistake.
//
// registry calls it. It has no state.
//
// Its files: patch.go, and strategic.go, which checks a strategic merge patch before the library gets it.
package patch
