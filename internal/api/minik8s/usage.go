package minik8s

// The annotations on a node's Lease in which its kubelet reports, with each heartbeat, what the node's containers
// really use: thousandths of a core, averaged since the last heartbeat, and bytes of working set. They are on the Lease
// and not on the Node, because the Lease is written with each heartbeat anyway, and a write to the Node would wake
// everything that watches Nodes. The scheduler's strategies min-cpu and min-mem read them.
const (
	UsageCPU    = "minik8s.io/usage-cpu-millis"
	UsageMemory = "minik8s.io/usage-memory-bytes"
)
