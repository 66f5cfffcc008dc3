// Package volume makes the volumes of pods and says what to mount into their containers.
//
// It promises: SetUp and TearDown may be called again at any time, TearDown also without SetUp;
// TearDown removes what SetUp made and never what a hostPath shows; a subPath never leads out of its
// volume, whatever links are in it. Everything of a pod lies under ROOT/<uid>:
//
//	volumes/<kind>/<name>      the volume's content, or a tmpfs mounted there
//	subpaths/<container>/<n>   the n-th mount of a container with a subPath, bound there
//	containers/                the kubelet's own files
//
// Users of the machine cannot enter it: a container sees a volume where it is mounted, not the way to it, so
// the directories above are closed (0750) however open the volume itself has to be.
//
// A volume that follows ConfigMaps, Secrets, the pod itself or the clock (tokens end) is brought up to date
// by another SetUp, all of its files in one step; what holds secrets or tokens lies in memory.
//
// To add a kind of volume: a row in plugins. The kubelet calls this package; what is on disk and
// mounted survives a kill -9, and is found again by its path alone.
package volume
