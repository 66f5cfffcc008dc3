package top

import (
	"cmp"
	"slices"
)

// point is a use of both resources: cores, and bytes.
type point struct{ cpu, memory float64 }

// row is a node, a pod or a container.
type row struct {
	node                      string
	namespace, pod, container string
	point
	restarts int     // of a container, or of all of a pod; no node has any
	whole    point   // what it could use at most; zero: not known
	course   []point // oldest first, this one included
}

func (r *row) key() string {
	return r.node + "/" + r.namespace + "/" + r.pod + "/" + r.container
}

// The orders.
const (
	ByCPU    = "cpu"
	ByMemory = "memory"
	ByName   = "name"
)

// Orders are all there are.
var Orders = []string{ByCPU, ByMemory, ByName}

// order sorts rows: those that use most first.
func order(rows []row, by string) {
	slices.SortFunc(rows, func(a, b row) int {
		use := 0
		switch by {
		case ByCPU:
			use = cmp.Compare(b.cpu, a.cpu)
		case ByMemory:
			use = cmp.Compare(b.memory, a.memory)
		}
		return cmp.Or(use, cmp.Compare(a.key(), b.key()))
	})
}

// remembered is how many points of a course are kept: of five minutes, at the shortest interval that is offered.
const remembered = 150

// courses are what was read before, by the rows' keys.
type courses map[string][]point

// add completes rows with their courses, and forgets those of other rows.
func (c courses) add(rows []row) courses {
	next := make(courses, len(rows))
	for i := range rows {
		r := &rows[i]
		r.course = append(c[r.key()], r.point)
		if extra := len(r.course) - remembered; extra > 0 {
			r.course = slices.Clone(r.course[extra:])
		}
		next[r.key()] = r.course
	}
	return next
}
