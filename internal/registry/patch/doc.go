// Package patch changes a document by a JSON patch, a merge patch or a strategic merge patch. Server-side apply, which
// has to know who owns which field, is package apply.
//
// It promises: it is pure, bytes in and bytes out; a patch is bounded in operations and in what its copies add up to; a
// patch over which a library would panic is refused with the path of what is wrong with it.
//
// registry calls it. It has no state.
//
// Its files: patch.go, and strategic.go, which looks at a strategic merge patch before the library does.
package patch
