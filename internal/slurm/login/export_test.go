package login

import "time"

// Hasten shortens a node's limits.
func (n *Node) Hasten(command, refused, stall time.Duration) {
	n.limits = limits{command, refused, stall}
}
