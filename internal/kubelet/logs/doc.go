// Package logs reads the logs of containers: files in the CRI format, "TIME STREAM TAG CONTENT" per
// line, as the runtime writes them, with the rotated ones beside.
//
// A container's log is PATH ("0.log") and, after rotation, older parts named PATH plus "." and
// something that sorts by time ("0.log.20250102-150405" or "0.log.1"), which may be gzip (".gz").
//
// It promises: lines come in order, each once, across rotations; following waits for the kernel to
// say that the file has changed, and never polls. The kubelet calls it. It writes nothing.
package logs
