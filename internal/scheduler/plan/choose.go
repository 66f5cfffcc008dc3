package plan

// maxWalk is how many of the best candidates are tried one by one before all candidates are scanned.
const maxWalk = 48

// Choose returns the name of the node that the pod should get, or the reason why there is none. The caller must call
// Place for the pod before it calls Choose again.
func (c *Cluster) Choose(p *Pod) (string, *Refusal) {
	if c.known == 0 {
		return "", &Refusal{Text: "no nodes available to schedule pods"}
	}
	i := int32(-1)
	if names := p.targets(); names != nil && len(p.spread) == 0 {
		i = c.amongPins(p, names)
		if i < 0 {
			return "", c.refusal(p, nil)
		}
	} else {
		cl := c.class(p)
		d := c.prepare(p, cl)
		if i = c.best(cl, d); i < 0 {
			return "", c.refuse(p, cl, d)
		}
	}
	n := c.nodes[i]
	c.turn++
	n.turn = c.turn
	c.touch(n)
	return n.name, nil
}

// targets returns the only nodes that the pod can be on; nil if it may be on any.
func (p *Pod) targets() []string {
	if name := p.Obj.Spec.NodeName; name != "" {
		return []string{name}
	}
	return p.pins
}

// amongPins chooses among a few nodes; -1 if none of them takes the pod.
func (c *Cluster) amongPins(p *Pod, names []string) int32 {
	d := c.prepare(p, nil)
	best, bestRank := int32(-1), rank{}
	for _, name := range names {
		n := c.byName[name]
		if n == nil {
			continue
		}
		_, r, ok := c.eval(p, n)
		if !ok {
			continue
		}
		if d != nil {
			if cause, _ := d.check(n.index); cause != 0 {
				continue
			}
			r.wish += d.wish(n.index)
		}
		if best < 0 || better(r, bestRank) {
			best, bestRank = n.index, r
		}
	}
	return best
}

func better(x, y rank) bool {
	switch {
	case x.wish != y.wish:
		return x.wish > y.wish
	case x.score != y.score:
		return x.score > y.score
	}
	return x.turn < y.turn
}

// best returns the highest-ranked candidate that d allows; -1 if there is none.
func (c *Cluster) best(cl *class, d *dynamics) int32 {
	switch {
	case len(cl.heap) == 0:
		return -1
	case c.strategy == Random && (cl.wishes || d != nil && d.wishful()):
		return c.scan(cl, d)
	case c.strategy == Random:
		for range maxWalk {
			i := cl.heap[c.rand.IntN(len(cl.heap))]
			if d == nil {
				return i
			}
			if cause, _ := d.check(i); cause == 0 {
				return i
			}
		}
		return c.scan(cl, d)
	case d == nil:
		return cl.heap[0]
	case d.wishful():
		return c.scan(cl, d)
	}
	i, done := c.descend(cl, d)
	if i < 0 && !done {
		return c.scan(cl, d)
	}
	return i
}

// descend tries at most maxWalk candidates, the best first. done reports whether it tried all of them.
func (c *Cluster) descend(cl *class, d *dynamics) (i int32, done bool) {
	// walk is a small heap of positions in the class's heap. It always holds the best candidate not yet tried.
	walk := append(c.walk[:0], 0)
	defer func() { c.walk = walk }()
	for tried := 0; len(walk) > 0; tried++ {
		if tried == maxWalk {
			return -1, false
		}
		at := walk[0]
		i := cl.heap[at]
		if cause, _ := d.check(i); cause == 0 {
			return i, true
		}
		last := len(walk) - 1
		walk[0] = walk[last]
		walk = walk[:last]
		cl.sink(walk)
		for child := 2*at + 1; child <= 2*at+2 && int(child) < len(cl.heap); child++ {
			walk = append(walk, child)
			cl.rise(walk)
		}
	}
	return -1, true
}

func (cl *class) sink(walk []int32) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(walk) {
			return
		}
		if right := child + 1; right < len(walk) && cl.before(cl.heap[walk[right]], cl.heap[walk[child]]) {
			child = right
		}
		if !cl.before(cl.heap[walk[child]], cl.heap[walk[i]]) {
			return
		}
		walk[i], walk[child] = walk[child], walk[i]
		i = child
	}
}

func (cl *class) rise(walk []int32) {
	for i := len(walk) - 1; i > 0; {
		parent := (i - 1) / 2
		if !cl.before(cl.heap[walk[i]], cl.heap[walk[parent]]) {
			return
		}
		walk[i], walk[parent] = walk[parent], walk[i]
		i = parent
	}
}

// scan tries all candidates.
func (c *Cluster) scan(cl *class, d *dynamics) int32 {
	best, bestRank, equal := int32(-1), rank{}, 0
	for _, i := range cl.heap {
		r := cl.ranks[i]
		if d != nil {
			if cause, _ := d.check(i); cause != 0 {
				continue
			}
			r.wish += d.wish(i)
		}
		switch {
		case best < 0 || better(r, bestRank):
		case c.strategy != Random && (better(bestRank, r) || i > best), bestRank.wish > r.wish:
			continue
		}
		if c.strategy == Random && best >= 0 && r.wish == bestRank.wish {
			// Each of several equal candidates is kept with the same probability.
			if equal++; c.rand.IntN(equal) > 0 {
				continue
			}
		} else {
			equal = 1
		}
		best, bestRank = i, r
	}
	return best
}
