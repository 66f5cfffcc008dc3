// Package bin holds the programs that containers need, inside this binary: runc, keeper and pause, compressed.
// deploy/runtime/build.sh builds them into this directory.
//
// Who calls it: containerd/embed, which unpacks them at every start where they are not there yet. Tests ask whether
// they are built.
//
// A kill -9 or a power cut while they are unpacked leaves no stamp, and the next start unpacks them again. A program
// that runs is never written to.
package bin
