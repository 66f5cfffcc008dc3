// Package datadir is the daemon's data directory as a whole: whether a directory may become one, what in it
// is the daemon's, and the marker by which a later "clean" knows.
//
// It promises: Open refuses a directory in which somebody else's files lie, before it has changed anything,
// and one that another user owns; what it opens only root may enter, also if it was open before. Mark
// writes down that the directory is the daemon's, whether the daemon made it, by what name it was
// called, and in which cgroups its pods lived. Contents says what is in it: what the daemon made, what
// people gave it (archives of images), and what it does not know. A directory of a version that wrote no
// marker is known by what it holds.
//
// roles calls it at start and to clean. The marker is on the disk before anything else is written.
package datadir
