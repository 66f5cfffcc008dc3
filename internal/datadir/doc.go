// Package datadir is the daemon's data directory as a whole: whether a directory may become one, which files in it
// are the daemon's, and the marker that "clean" reads.
//
// It promises: Open refuses a directory with files that are not the daemon's, before it has changed anything, and one
// that another user owns; only root may enter a directory after Open, also if it was open to others before. Mark
// records that the directory is the daemon's, whether the daemon created it, its name, and the cgroups of its pods.
// Contents lists what is in it: what the daemon made, what people put there for it (archives of images), and unknown
// files. A directory of a version that wrote no marker is recognised by its files.
//
// roles calls it at start and for "clean". The marker is on the disk before anything else is written.
package datadir
