package plan

// Strategy is how a node is chosen among those that fit a pod and that its own wishes leave.
type Strategy string

// The strategies, by the names that ClusterConfig and the command line use.
const (
	// Spread takes the node with the largest share of cpu and memory not asked for; ties go round.
	Spread Strategy = "spread"
	// Random takes any, each as likely as the others.
	Random Strategy = "random"
	// RoundRobin takes the one that was chosen longest ago.
	RoundRobin Strategy = "round-robin"
	// MinPods and MaxPods take the one with the fewest and the most pods.
	MinPods Strategy = "min-pods"
	MaxPods Strategy = "max-pods"
	// MinCPU and MinMem take the one that really uses the smallest share, as the nodes report it, with
	// what pods that came since then ask for; a node that reports nothing counts what its pods ask for.
	MinCPU Strategy = "min-cpu"
	MinMem Strategy = "min-mem"
)

// grain is the number of steps in which shares are told apart: nodes that differ by less are equal, and
// take turns.
const grain = 10000

// score is how well a node does for a strategy, pod included: more is better.
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

// share is part of whole in steps of grain. Stand-ins for requests may make it more than all.
func share(part, whole int64) int64 {
	if whole <= 0 {
		return grain
	}
	return int64(float64(part) / float64(whole) * grain)
}
