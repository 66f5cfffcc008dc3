package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// record is all that was seen. Times are since its beginning.
type record struct {
	least, most int // replicas that the autoscaler may choose
	target      int // percent of the CPU that is requested
	samples     []sample
	answers     []answer
	failures    []failure
	moments     []moment
}

// sample is the state at one time.
type sample struct {
	at     time.Duration
	wanted int               // replicas, by the autoscaler
	pods   int               // with those that start and those that end
	used   int               // percent of the CPU that is requested, as the autoscaler has it; -1: it does not know
	ready  map[string]string // the pods that are, and their nodes
}

// answer is a request that was answered.
type answer struct {
	at, took time.Duration
	pod      string
}

// failure is a request that was not.
type failure struct {
	at  time.Duration
	err error
}

// moment is when the client began to ask so many times a second for so much work, and what of the switch it asked for, if anything.
type moment struct {
	at    time.Duration
	rate  int
	work  time.Duration
	press string
}

// peak is the first sample with the most replicas that are ready.
func (r *record) peak() (p sample) {
	for _, s := range r.samples {
		if len(s.ready) > len(p.ready) {
			p = s
		}
	}
	return p
}

// nodes are those of all pods that were seen ready.
func (r *record) nodes() map[string]string {
	all := map[string]string{}
	for _, s := range r.samples {
		maps.Copy(all, s.ready)
	}
	return all
}

// String is a line for people.
func (s sample) String() string {
	on := map[string]int{}
	for _, node := range s.ready {
		on[node]++
	}
	var where []string
	for _, node := range slices.Sorted(maps.Keys(on)) {
		where = append(where, fmt.Sprintf("%s %d", node, on[node]))
	}
	used := "  ?"
	if s.used >= 0 {
		used = fmt.Sprintf("%3d", s.used)
	}
	return fmt.Sprintf("%6.1fs  CPU %s%%  wanted %d  pods %d  ready %d  (%s)", s.at.Seconds(), used, s.wanted, s.pods, len(s.ready), strings.Join(where, ", "))
}

// summary is what is told at the end: who answered, and how soon.
func (r *record) summary() string {
	var b strings.Builder
	node, by := r.nodes(), map[string]int{}
	var took []time.Duration
	for _, a := range r.answers {
		by[a.pod]++
		took = append(took, a.took)
	}
	for _, pod := range slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return strings.Compare(node[a]+" "+a, node[b]+" "+b)
	}) {
		fmt.Fprintf(&b, "%-24s on %-8s answered %4d requests\n", pod, node[pod], by[pod])
	}
	fmt.Fprintf(&b, "%d requests were answered and %d failed", len(r.answers), len(r.failures))
	if len(took) > 0 {
		slices.Sort(took)
		fmt.Fprintf(&b, "; half of them within %s, the slowest within %s", took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	}
	b.WriteString("\n")
	return b.String()
}
