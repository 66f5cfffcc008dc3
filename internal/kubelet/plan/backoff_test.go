package plan_test

import (
	"slices"
	"testing"
	"time"

	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestBackoffGrows(t *testing.T) {
	cm := &plan.ContainerState{}
	now := plantest.Noon
	cm.Started(nil, now)
	var waits []time.Duration
	for attempt := range 9 {
		c := plantest.Exited("web", attempt, 1, now.Add(time.Second))
		at, _ := cm.RestartAt(&c)
		now = c.FinishedAt
		wait := time.Duration(0)
		if !at.IsZero() {
			wait = at.Sub(now)
			now = at
		}
		waits = append(waits, wait/time.Second)
		cm.Started(&c, now)
	}
	if want := []time.Duration{0, 10, 20, 40, 80, 160, 300, 300, 300}; !slices.Equal(waits, want) {
		t.Errorf("waits %d, want %d", waits, want)
	}
	good := plantest.Exited("web", 9, 1, now.Add(11*time.Minute))
	if at, _ := cm.RestartAt(&good); !at.IsZero() {
		t.Error("a good run does not end the back-off")
	}
	cm.Started(&good, good.FinishedAt)
	if cm.Backoff != plan.MinRestartBackoff {
		t.Errorf("after a good run the back-off begins at %s", cm.Backoff)
	}
}

// If an end was recorded by a clock ahead of ours, it delays a restart by no more than the back-off.
func TestBackoffByAClockThatIsSet(t *testing.T) {
	for _, x := range []struct {
		name  string
		ended time.Time
		wait  time.Duration
	}{
		{"just now", plantest.Noon, 10 * time.Second},
		{"a while ago", plantest.Ago(4 * time.Second), 6 * time.Second},
		{"in an hour", plantest.Noon.Add(time.Hour), 10 * time.Second},
	} {
		mem := plan.NewState()
		c := plantest.Exited("web", 1, 1, x.ended)
		c.CreatedAt = x.ended.Add(-time.Second)
		c.FinishedAt = mem.EndTime(c.ID, x.ended, plantest.Noon)
		if at, _ := mem.Container("web").RestartAt(&c); at.Sub(plantest.Noon) != x.wait {
			t.Errorf("%s: it waits %s, want %s", x.name, at.Sub(plantest.Noon), x.wait)
		}
		// A time that was once converted stays the same, even if the clock is set.
		if again := mem.EndTime(c.ID, x.ended, plantest.Noon.Add(-time.Hour)); !again.Equal(c.FinishedAt) {
			t.Errorf("%s: it ended at %s, and then at %s", x.name, c.FinishedAt, again)
		}
	}
}

// A lost container runs again at once and is not a crash. One that crashed before keeps waiting.
func TestNoBackoffForTheLost(t *testing.T) {
	lost := plantest.Exited("web", 3, 137, plantest.Noon)
	lost.Lost = true
	cm := &plan.ContainerState{}
	if at, _ := cm.RestartAt(&lost); !at.IsZero() {
		t.Errorf("it waits until %s", at)
	}
	cm.Started(&lost, plantest.Noon)
	crashed := plantest.Exited("web", 4, 1, plantest.Noon.Add(time.Second))
	if at, delay := cm.RestartAt(&crashed); !at.IsZero() {
		t.Errorf("its first crash waits %s", delay)
	}
	before := plantest.Exited("web", 1, 1, plantest.Noon)
	before.CreatedAt = plantest.Ago(time.Minute)
	if at, _ := (&plan.ContainerState{}).RestartAt(&before); !at.Equal(plantest.Noon.Add(plan.MinRestartBackoff)) {
		t.Errorf("what crashed waits until %s", at)
	}
}
