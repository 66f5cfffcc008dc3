package plan

import (
	"slices"

	"minik8s/internal/api/placement"
)

// What a class knows of a node besides whether it is a candidate; topology spread needs it.
const (
	okSelected uint8 = 1 << iota // nodeSelector and required node affinity
	okTaints
)

// rank orders candidates: higher wish first, then higher score, then the one that was chosen longest ago.
type rank struct {
	wish, score int64
	turn        uint64
}

// class is how pods of one kind see the nodes: a heap of the candidates.
type class struct {
	flags  []uint8
	ranks  []rank
	heap   []int32 // nodes, the best first
	pos    []int32 // by node: place in heap; -1: no candidate
	behind int     // number of the next change in the log to read
	used   uint64
	wishes bool // candidates have different wish values
	// none is the reason why there is no candidate; noneAt is the number of changes up to which it holds.
	none   *Refusal
	noneAt int
}

// maxClasses is the most classes that are kept; a class for 5,000 nodes takes 200 kB.
const maxClasses = 64

// class returns the class of a pod, brought up to date.
func (c *Cluster) class(p *Pod) *class {
	c.buf = p.classKey(c.buf)
	cl := c.classes[string(c.buf)]
	if cl == nil {
		if len(c.classes) >= maxClasses {
			c.dropClass()
		}
		cl = &class{behind: -1}
		c.classes[string(c.buf)] = cl
	}
	cl.used = c.turn
	end := c.first + len(c.changes)
	if cl.behind < c.first || end-cl.behind > len(c.nodes)/2+16 {
		cl.build(c, p)
	} else {
		for ; cl.behind < end; cl.behind++ {
			cl.renew(c, p, c.changes[cl.behind-c.first])
		}
	}
	cl.behind = end
	return cl
}

// dropClass removes the least recently used class.
func (c *Cluster) dropClass() {
	oldest, at := "", ^uint64(0)
	for key, cl := range c.classes {
		if cl.used < at || cl.used == at && key < oldest {
			oldest, at = key, cl.used
		}
	}
	delete(c.classes, oldest)
}

// eval checks and ranks one node for a pod.
func (c *Cluster) eval(p *Pod, n *node) (flags uint8, r rank, ok bool) {
	if n.obj == nil {
		return 0, rank{}, false
	}
	spec := &p.Obj.Spec
	if placement.Selects(spec, n.obj) {
		flags |= okSelected
	}
	if placement.Untolerated(spec.Tolerations, n.obj.Spec.Taints) < 0 {
		flags |= okTaints
	}
	if flags != okSelected|okTaints || spec.NodeName != "" && spec.NodeName != n.name || !n.fits(p) || !n.portsFree(p) {
		return flags, rank{}, false
	}
	if open, _ := n.open(spec.Tolerations); !open {
		return flags, rank{}, false
	}
	return flags, rank{c.wish(p, n), c.strategy.score(p, n), n.turn}, true
}

// unwelcomeCost is the cost of an untolerated PreferNoSchedule taint, on the scale of the weights of preferred terms.
const unwelcomeCost = 100

// wish returns how much the pod prefers the node for the node's own properties.
func (c *Cluster) wish(p *Pod, n *node) int64 {
	w := liking(&p.Obj.Spec, n.obj)
	if len(n.obj.Spec.Taints) > 0 {
		w -= unwelcomeCost * unwelcome(p.Obj.Spec.Tolerations, n.obj.Spec.Taints)
	}
	return w
}

// build makes the class from scratch.
func (cl *class) build(c *Cluster, p *Pod) {
	size := len(c.nodes)
	cl.flags = slices.Grow(cl.flags[:0], size)[:size]
	cl.ranks = slices.Grow(cl.ranks[:0], size)[:size]
	cl.pos = slices.Grow(cl.pos[:0], size)[:size]
	cl.heap, cl.wishes, cl.none = cl.heap[:0], false, nil
	for i, n := range c.nodes {
		var ok bool
		cl.pos[i] = -1
		if cl.flags[i], cl.ranks[i], ok = c.eval(p, n); ok {
			cl.wishes = cl.wishes || cl.ranks[i].wish != 0
			cl.pos[i] = int32(len(cl.heap))
			cl.heap = append(cl.heap, int32(i))
		}
	}
	for i := len(cl.heap)/2 - 1; i >= 0; i-- {
		cl.down(i)
	}
}

// renew evaluates one node again.
func (cl *class) renew(c *Cluster, p *Pod, i int32) {
	for int(i) >= len(cl.pos) {
		cl.pos = append(cl.pos, -1)
		cl.flags = append(cl.flags, 0)
		cl.ranks = append(cl.ranks, rank{})
	}
	flags, r, ok := c.eval(p, c.nodes[i])
	cl.flags[i], cl.ranks[i] = flags, r
	at := int(cl.pos[i])
	switch {
	case ok && at < 0:
		at = len(cl.heap)
		cl.heap = append(cl.heap, i)
		cl.pos[i] = int32(at)
		cl.up(at)
	case ok:
		if !cl.down(at) {
			cl.up(at)
		}
	case at >= 0:
		last := len(cl.heap) - 1
		cl.swap(at, last)
		cl.heap = cl.heap[:last]
		cl.pos[i] = -1
		if at < last && !cl.down(at) {
			cl.up(at)
		}
	}
	cl.wishes = cl.wishes || ok && r.wish != 0
}

// before reports whether candidate a is better than b.
func (cl *class) before(a, b int32) bool {
	x, y := &cl.ranks[a], &cl.ranks[b]
	switch {
	case x.wish != y.wish:
		return x.wish > y.wish
	case x.score != y.score:
		return x.score > y.score
	case x.turn != y.turn:
		return x.turn < y.turn
	}
	return a < b
}

func (cl *class) swap(i, j int) {
	cl.heap[i], cl.heap[j] = cl.heap[j], cl.heap[i]
	cl.pos[cl.heap[i]], cl.pos[cl.heap[j]] = int32(i), int32(j)
}

func (cl *class) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !cl.before(cl.heap[i], cl.heap[parent]) {
			return
		}
		cl.swap(i, parent)
		i = parent
	}
}

// down moves an entry down the heap and reports whether it moved.
func (cl *class) down(i int) bool {
	start := i
	for {
		child := 2*i + 1
		if child >= len(cl.heap) {
			break
		}
		if right := child + 1; right < len(cl.heap) && cl.before(cl.heap[right], cl.heap[child]) {
			child = right
		}
		if !cl.before(cl.heap[child], cl.heap[i]) {
			break
		}
		cl.swap(i, child)
		i = child
	}
	return i > start
}
