package plan

// Strategy is how a node is chosen among those that fit a pod and that it prefers most.
type Strategy string

// The strategies, with the names that ClusterConfig and the command line use.
const (
	// Spread takes the node with the largest share of cpu and memory not requested; equal nodes take turns.
	Spread Strategy = "spread"
	// Random takes any node, all with the same probability.
	Random Strategy = "random"
	// RoundRobin takes the node that was chosen longest ago.
	RoundRobin Strategy = "round-robin"
	// MinPods and MaxPods take the node with the fewest and the most pods.
	MinPods Strategy = "min-pods"
	MaxPods Strategy = "max-pods"
	// MinCPU and MinMem take the node with the smallest share in real use: the usage that the node reports, plus the
	// requests of the pods that came since. For a node that reports nothing, the requests of its pods count.
	MinCPU Strategy = "min-cpu"
	MinMem Strategy = "min-mem"
)

// grain is the number of steps into which shares are divided. Nodes in the same step are equal, and take turns.
const grain = 10000

// score returns how good a node is by a strategy, with the pod included: more is better.
func (s Strategy) score(p *Pod, n *node) int64 {
	switch s {
	case Spread:
		return grain*2 - share(n.load[cpu]+p.weight[cpu], at(n.room, cpu)) - share(n.load[memory]+p.weight[memory], at(n.room, memory))
	case MinPods:
		return -int64(len(n.pods))
	case MaxPods:
		return int64(len(n.pods))
	case MinCPU:
		return -share(n.uses(cpu), at(n.room, cpu))
	case MinMem:
		return -share(n.uses(memory), at(n.room, memory))
	}
	return 0
}

func (n *node) uses(resource int) int64 {
	if !n.reported {
		return n.load[resource]
	}
	return n.usage[resource] + n.sinceThen[resource]
}

// share returns part/whole in steps of grain. It can exceed grain, since containers without requests count too.
func share(part, whole int64) int64 {
	if whole <= 0 {
		return grain
	}
	return int64(float64(part) / float64(whole) * grain)
}
