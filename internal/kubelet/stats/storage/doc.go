// Package storage measures what files of containers and pods take on disk, and how full the machine's file systems are.
//
// Trees have to be walked to know their size, which can take long: so that is done in the background while somebody asks, once
// a minute, or less often if it takes more than a hundredth of the time, but every quarter of an hour. A question gets what
// was measured last; the first one gets nothing, and so does one that comes long after the one before.
//
// It promises: a walk follows no link, leaves no file system, and holds no more than 256 names of each of the directories that
// it is in, whatever a container does with its files meanwhile; a file with several names counts once. What lies more than 128
// directories deep is not counted. A place that takes longer than ten seconds is not known; others are, all the same.
//
// The server of the kubelet calls it. What was measured is in memory alone.
package storage
