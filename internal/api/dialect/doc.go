// Package dialect reads the manifests of the two systems that minik8s continues.
//
// It promises that a document which is canonical is left as it is, that every rewriting is named in a
// note for the one who wrote the manifest, and that a document of any shape at all, wrong types
// included, passes through without a panic: what it does not understand stays in place for the strict
// decoder to refuse. Nothing past it knows that dialects exist.
//
// Package registry runs For on the bodies of requests, and Patched on what a patch makes of an object; ctl
// runs Identify to find out where a manifest goes. It holds no state and does no I/O.
package dialect
