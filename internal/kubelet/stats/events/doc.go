// Package events knows which containers of this node began and ended, and which processes the kernel ended in them for want
// of memory: the events of cAdvisor's API.
//
// Begins and ends are the runtime's, as the kubelet learns of them. What the OOM killer did is read from the kernel's log
// (/dev/kmsg) when somebody asks, and while somebody follows: it names the process, as no counter does. The kernel leaves
// some out when it kills many in a second, and where its log cannot be read no such events are known.
//
// It promises: nothing happens here but when a container begins or ends, or somebody asks. Processes of others on this machine
// are not named. A stream has what happens from its beginning on, each event once; one whose reader is too slow ends. A
// container that begins and is removed while the runtime has no time to say so may be missing.
//
// The server of the kubelet runs it. It keeps the newest 1,000 events, in memory; those of containers that still exist, and
// the kernel's, are known again after a restart.
package events
