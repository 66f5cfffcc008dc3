package node

import (
	"maps"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Memory is the node's memory in bytes.
func (n *Manager) Memory() int64 {
	c := n.capacity(nil)
	return c.Memory().Value()
}

// Allocatable is what pods may request now.
func (n *Manager) Allocatable() corev1.ResourceList {
	return allocatableOf(n.capacity(n.known()))
}

// allocatableOf is the allocatable part of a capacity: all, except for a tenth of the disk.
func allocatableOf(capacity corev1.ResourceList) corev1.ResourceList {
	c := maps.Clone(capacity)
	if disk, ok := c[corev1.ResourceEphemeralStorage]; ok {
		disk.Set(disk.Value() / 10 * 9)
		c[corev1.ResourceEphemeralStorage] = disk
	}
	return c
}

// capacity is the machine's, and what others have written into the Node's capacity, such as licences or devices that
// the kubelet itself does not know. node may be nil.
func (n *Manager) capacity(node *corev1.Node) corev1.ResourceList {
	c := corev1.ResourceList{}
	if node != nil {
		maps.Copy(c, node.Status.Capacity)
	}
	maps.Copy(c, n.host.capacity(n.cfg.MaxPods))
	maps.Copy(c, n.cfg.Capacity)
	return c
}

// capacity is the machine's capacity, and the configured number of pods.
func (h hostInfo) capacity(maxPods int) corev1.ResourceList {
	size, _ := h.disk()
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(h.memory, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(maxPods), resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(size, resource.BinarySI),
	}
}
