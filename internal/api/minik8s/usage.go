package minik8s

// The annotations of a node's Lease in which its kubelet says, with each heartbeat, what the containers
// of the node really use: thousandths of a core, on average since the last heartbeat, and bytes of
// working set. They stand on the Lease and not on the Node because the Lease is written with each
// heartbeat anyway, and because whoever watches Nodes shall not be woken by them. The scheduler's
// strategies min-cpu and min-mem read them.
const (
	UsageCPU    = "minik8s.io/usage-cpu-millis"
	UsageMemory = "minik8s.io/usage-memory-bytes"
)
