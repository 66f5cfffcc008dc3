// Package volume makes the volumes of pods and says what to mount into their containers.
//
// It promises: SetUp and TearDown may be called again at any time, TearDown also without SetUp; TearDown removes what
// SetUp made and never the content of a hostPath; a subPath never leads out of its volume, whatever links are in it.
// Everything of a pod is under ROOT/<uid>:
//
//	volumes/<kind>/<name>      the volume's content, or a tmpfs mounted there
//	subpaths/<container>/<n>   the n-th mount of a container with a subPath, bound there
//	containers/                the kubelet's own files
//
// Other users of the machine cannot enter it: a container sees a volume where it is mounted, not its parent
// directories, so these have mode 0750 whatever mode the volume itself needs.
//
// A volume that follows ConfigMaps, Secrets, the pod itself or the clock (tokens end) is updated by another SetUp,
// all of its files in one step; volumes with secrets or tokens are in memory.
//
// To add a kind of volume: a row in plugins. The kubelet calls this package; what is on disk and
// mounted survives a kill -9, and is found again by its path alone.
package volume
