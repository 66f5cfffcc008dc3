package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// amounts are quantities by resource: cpu in thousandths of a core, all else in units.
type amounts map[corev1.ResourceName]int64

func (a amounts) add(b amounts, sign int64) {
	for k, v := range b {
		a[k] += sign * v
	}
}

func toAmounts(list corev1.ResourceList) amounts {
	out := make(amounts, len(list))
	for name, q := range list {
		if name == corev1.ResourceCPU {
			out[name] = q.MilliValue()
		} else {
			out[name] = q.Value()
		}
	}
	return out
}

// hostPort is a port of the node that a pod takes.
type hostPort struct {
	ip, protocol string
	port         int32
}

func (a hostPort) clashes(b hostPort) bool {
	return a.port == b.port && a.protocol == b.protocol && (a.ip == b.ip || a.ip == "" || b.ip == "")
}

// podInfo is what the scheduler needs of a pod, worked out once.
type podInfo struct {
	pod      *corev1.Pod
	requests amounts
	ports    []hostPort
}

func newPodInfo(pod *corev1.Pod) *podInfo {
	p := &podInfo{pod: pod, requests: podRequests(pod)}
	for _, c := range pod.Spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort > 0 {
				ip := port.HostIP
				if ip == "0.0.0.0" || ip == "::" {
					ip = ""
				}
				p.ports = append(p.ports, hostPort{ip, string(port.Protocol), port.HostPort})
			}
		}
	}
	return p
}

// podRequests is what a pod needs at its widest: the sum of its containers and sidecars, or the
// largest init container beside the sidecars started before it; and its overhead.
func podRequests(pod *corev1.Pod) amounts {
	sum, widest, sidecars := amounts{}, amounts{}, amounts{}
	for _, c := range pod.Spec.Containers {
		sum.add(toAmounts(c.Resources.Requests), 1)
	}
	for _, c := range pod.Spec.InitContainers {
		r := toAmounts(c.Resources.Requests)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars.add(r, 1)
			sum.add(r, 1)
			r = amounts{}
		}
		for k := range r {
			widest[k] = max(widest[k], r[k]+sidecars[k])
		}
	}
	for k, v := range widest {
		sum[k] = max(sum[k], v)
	}
	sum.add(toAmounts(pod.Spec.Overhead), 1)
	return sum
}

// nodeInfo is a node and the sum of its pods.
type nodeInfo struct {
	node        *corev1.Node // nil: pods are known, the node is not (yet)
	ready       bool
	allocatable amounts
	requested   amounts
	ports       map[hostPort]int
	pods        int64
	turn        uint64 // when it last got a pod: ties go to the one that waited longest
}

// state is the cluster as the scheduler sees it, kept by events. One goroutine uses it.
type state struct {
	nodes map[string]*nodeInfo
	// placed is where each pod counts, bound or assumed to be.
	placed map[types.UID]placement
	turn   uint64
}

type placement struct {
	node string
	info *podInfo
}

func newState() *state {
	return &state{nodes: map[string]*nodeInfo{}, placed: map[types.UID]placement{}}
}

func (s *state) info(name string) *nodeInfo {
	n := s.nodes[name]
	if n == nil {
		n = &nodeInfo{requested: amounts{}, ports: map[hostPort]int{}}
		s.nodes[name] = n
	}
	return n
}

func (s *state) setNode(node *corev1.Node) {
	n := s.info(node.Name)
	n.node, n.allocatable, n.ready = node, toAmounts(node.Status.Allocatable), false
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.ready = c.Status == corev1.ConditionTrue
		}
	}
}

func (s *state) removeNode(name string) {
	n := s.nodes[name]
	if n == nil {
		return
	}
	if n.node = nil; n.pods == 0 {
		delete(s.nodes, name)
	}
}

// place counts a pod on a node; a pod counted elsewhere is moved.
func (s *state) place(p *podInfo, node string) {
	if old, ok := s.placed[p.pod.UID]; ok {
		if old.node == node {
			return
		}
		s.remove(p.pod.UID)
	}
	s.placed[p.pod.UID] = placement{node, p}
	n := s.info(node)
	n.requested.add(p.requests, 1)
	n.pods++
	for _, hp := range p.ports {
		n.ports[hp]++
	}
	s.turn++
	n.turn = s.turn
}

// remove stops counting a pod; it says whether it was counted.
func (s *state) remove(uid types.UID) bool {
	at, ok := s.placed[uid]
	if !ok {
		return false
	}
	delete(s.placed, uid)
	n := s.info(at.node)
	n.requested.add(at.info.requests, -1)
	n.pods--
	for _, hp := range at.info.ports {
		if n.ports[hp]--; n.ports[hp] == 0 {
			delete(n.ports, hp)
		}
	}
	if n.node == nil && n.pods == 0 {
		delete(s.nodes, at.node)
	}
	return true
}

// choose picks the node with the largest share of cpu and memory free after taking the pod; ties go to
// the node that got a pod longest ago. "" with the reasons if there is none.
func (s *state) choose(p *podInfo) (string, map[string]int, int) {
	var best *nodeInfo
	var bestScore float64
	reasons, known := map[string]int{}, 0
	for _, n := range s.nodes {
		if n.node == nil {
			continue
		}
		known++
		if why := refusals(p, n); len(why) > 0 {
			for _, w := range why {
				reasons[w]++
			}
			continue
		}
		score := n.free(p)
		if best == nil || score > bestScore || score == bestScore && (n.turn < best.turn ||
			n.turn == best.turn && n.node.Name < best.node.Name) {
			best, bestScore = n, score
		}
	}
	if best == nil {
		return "", reasons, known
	}
	return best.node.Name, nil, known
}

// free is the mean share of cpu and memory that stays free.
func (n *nodeInfo) free(p *podInfo) float64 {
	var sum float64
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if all := n.allocatable[r]; all > 0 {
			sum += float64(all-n.requested[r]-p.requests[r]) / float64(all)
		}
	}
	return sum / 2
}
