package workflow

import (
	"strconv"
	"strings"
	"time"

	"minik8s/internal/api/minik8s"
)

// history is what a master that takes over a run has to know of its steps: how many there are, how much data they have, and of each branch that may go
// on the last one with which a state was left, and the retries after it. All that came before follows from those. Many runs may be taken over at once, and
// each may have much more in the store than has to be in memory.
type history struct {
	steps         map[place]*minik8s.WorkflowStep
	first         map[string]int64     // of each branch the number of the first of them, if it is not 0
	newest        map[string]int64     // of each branch the number of the newest step
	ended         map[string]time.Time // when branches have ended
	count, stored int64
}

func newHistory() *history {
	return &history{steps: map[place]*minik8s.WorkflowStep{}, first: map[string]int64{}, newest: map[string]int64{}, ended: map[string]time.Time{}}
}

// add takes in a step. They may come in any order; in that of their names, as the store lists them, a state's own step comes before those of its branches,
// which then need not be kept.
func (h *history) add(s *minik8s.WorkflowStep) {
	at := placeOf(s)
	h.count++
	h.stored += dataOf(&s.Spec)
	if h.left(at.branch) {
		return
	}
	if s.Spec.Next == "" {
		h.ended[at.branch] = s.Spec.Time.Time
	}
	h.newest[at.branch] = max(h.newest[at.branch], at.number)
	first := h.first[at.branch]
	if at.number < first {
		return
	}
	h.steps[at] = s
	if s.Spec.Event != minik8s.StepRetried {
		for ; first < at.number; first++ {
			delete(h.steps, place{at.branch, first})
		}
		h.first[at.branch] = first
	}
}

// left reports whether a state around a branch has been left, so that the branch never goes on.
func (h *history) left(branch string) bool {
	for branch != "" {
		i := strings.LastIndexByte(branch, '-')
		if i < 0 {
			return false
		}
		around, number := "", branch[:i]
		if j := strings.LastIndexByte(number, '.'); j >= 0 {
			around, number = number[:j], number[j+1:]
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if newest, ok := h.newest[around]; err == nil && ok && newest >= n {
			return true
		}
		branch = around
	}
	return false
}
