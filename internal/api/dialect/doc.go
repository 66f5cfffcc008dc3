// Package dialect reads the manifests of the two seed systems that minik8s continues.
//
// It promises: a canonical document is not changed. Every change is named in a note for the author of the manifest. No
// document causes a panic, whatever its shape and types: what is not understood stays in place, and the strict decoder
// then refuses it. The code behind it does not know that dialects exist.
//
// Package registry runs For on the bodies of requests, and Patched on the result of a patch. ctl runs Identify to find
// out where to send a manifest. The package holds no state and does no I/O.
package dialect
