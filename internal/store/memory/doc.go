// Package memory is a store.Store in the memory of the process, for tests that need no disk. It
// keeps the whole history until Compact. Nothing survives the process.
package memory
