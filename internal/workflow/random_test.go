package workflow

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"minik8s/internal/workflow/asl"
)

// generator makes random machines that always end, and whose results do not depend on time.
type generator struct {
	*rand.Rand
	names int
}

func (g *generator) name() string {
	g.names++
	return fmt.Sprintf("s%d", g.names)
}

// machine is a chain of states, some with branches.
func (g *generator) machine(depth int) string {
	n := 1 + g.IntN(4)
	names := make([]string, n)
	for i := range names {
		names[i] = g.name()
	}
	var states []string
	for i, name := range names {
		next := `"End":true`
		if i+1 < n {
			next = `"Next":"` + names[i+1] + `"`
		}
		retry := `"Retry":[{"ErrorEquals":["Flaky"],"IntervalSeconds":0.001}],`
		s := ""
		switch k := g.IntN(9); {
		case k == 0:
			s = `{"Type":"Pass","Parameters":{"x.$":"$.x","r.$":"States.MathAdd($.x, 1)"},` + next + `}`
		case k == 1:
			s = `{"Type":"Wait","Seconds":0,` + next + `}`
		case k == 2 && i+1 < n: // a jump, also past states: those have other ways from before
			s = `{"Type":"Choice","Choices":[{"Variable":"$.x","NumericLessThan":` + strconv.Itoa(g.IntN(30)) + `,"Next":"` + names[i+1] + `"}],"Default":"` + names[i+1+g.IntN(n-i-1)] + `"}`
		case k == 3:
			s = task("odd", `"Catch":[{"ErrorEquals":["States.TaskFailed"],"ResultPath":"$.e","Next":"`+names[min(i+1, n-1)]+`"}],`+next)
			if i+1 == n {
				s = task("add", next)
			}
		case k == 4 && depth < 2:
			var branches []string
			for range 1 + g.IntN(3) {
				branches = append(branches, g.machine(depth+1))
			}
			s = `{"Type":"Parallel",` + retry + `"ResultPath":"$.p","Branches":[` + strings.Join(branches, ",") + `],` + next + `}`
		case k == 5 && depth < 2:
			s = `{"Type":"Map","MaxConcurrency":` + strconv.Itoa(g.IntN(3)) + `,"ItemsPath":"$$.Execution.Input.l","ItemSelector":{"x.$":"$$.Map.Item.Value"},"ResultPath":"$.m","ItemProcessor":` + g.machine(depth+1) + `,` + next + `}`
		case k == 6:
			s = task("flaky", retry+`"InputPath":"$","ResultPath":"$.f",`+next)
		case k == 7 && i+1 < n:
			s = task("add", `"ResultSelector":{"x.$":"$.x"},"Left":"`+name+`","Right":"`+names[i+1]+`"`) // until x is 30
		default:
			s = task("add", next)
		}
		states = append(states, `"`+name+`":`+s)
	}
	return machine(names[0], states...)
}

// Random workflows whose controller is stopped at a random write, before or after that is done: no step that is committed is done again, and
// the run ends as it does undisturbed, by the same steps.
func TestStoppedAtAnyTransition(t *testing.T) {
	count := 150
	if testing.Short() {
		count = 40
	}
	if n, err := strconv.Atoi(os.Getenv("MINIK8S_RANDOM_WORKFLOWS")); err == nil {
		count = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("MINIK8S_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	again := 0
	for i := 0; i < count; {
		w := newWorld(t)
		for range min(50, count-i) { // a world for fifty, since the steps of all of them stay
			g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
			again += w.disturbed(t, i, g)
			i++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d workflows; %d calls were made a second time", count, again)
}

// disturbed runs a random workflow twice, the second time with a stop, and returns how many calls that has cost.
func (w *world) disturbed(t *testing.T, i int, g *generator) (again int) {
	definition := g.machine(0)
	for _, errs := asl.Parse([]byte(definition), nil); len(errs) > 0; _, errs = asl.Parse([]byte(definition), nil) { // a jump may leave a state without a way to it
		definition = g.machine(0)
	}
	name, plain, stopped := fmt.Sprintf("wf%d", i), fmt.Sprintf("plain%d", i), fmt.Sprintf("stopped%d", i)
	w.workflow(name, definition, nil)
	input := fmt.Sprintf(`{"x":%d,"l":[1,2,3]}`, g.IntN(12))
	w.mu.Lock()
	w.writes, w.killAt = 0, 0
	w.mu.Unlock()
	kill := w.begin()
	w.start(plain, name, input)
	want := w.wait(plain)
	kill()
	w.mu.Lock()
	clear(w.called)
	w.writes, w.killAt, w.after, w.hit = 0, 1+g.IntN(w.writes), g.IntN(2) == 0, make(chan struct{})
	w.mu.Unlock()
	kill = w.begin()
	w.start(stopped, name, input)
	<-w.hit
	kill()
	kill = w.begin()
	got := w.wait(stopped)
	kill()
	if got.Status.State != want.Status.State || string(got.Status.Output.Raw) != string(want.Status.Output.Raw) || got.Status.Error != want.Status.Error || got.Status.Steps != want.Status.Steps {
		t.Errorf("workflow %d: it ends as\n%+v\nand undisturbed as\n%+v\n%s", i, got.Status, want.Status, definition)
	}
	if a, b := w.history(stopped), w.history(plain); a != b {
		t.Errorf("workflow %d: its steps are\n%s\nand undisturbed\n%s\n%s", i, a, b, definition)
	}
	for _, n := range w.called {
		again += n - 1
	}
	return again
}
