// Package reflector follows the objects of a kind through watches that break, for as long as its caller lives.
//
// It promises: Replace is called with all objects there are, then Apply with every change after that, in order and
// each once. A watch that ends is opened again at the revision that it had reached. When the server answers that with
// an error, as it does when the history from there is compacted, the next watch begins with a list again and Replace
// is called again; objects that are not in the list do not exist any more. Between watches that bring nothing there
// is a pause, which doubles from 50 ms to 5 s, and begins at 50 ms again after a watch that lasted 5 s. Only the end of ctx ends it, and after that nothing is called any
// more.
//
// The list is sent by the watch itself (sendInitialEvents, KEP-3157), so that there is one request and not two.
//
// Package informer is a reflector with a cache; the kubelet keeps its pods, its Node and the objects that its pods
// use by reflectors without one. The namespace controller waits by one for what it deletes, and
// `get --watch` follows by one, or by Recover where the watch is of a Table. This is the only place where a watch of the
// API is recovered; the registry's cache follows the store below it. Nothing survives a kill -9, and nothing needs
// to.
package reflector
