package kubelet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A clock that is set while a pod ends neither takes its grace away nor gives it more.
func TestGraceByAClockThatIsSet(t *testing.T) {
	grace := int64(30)
	for _, step := range []time.Duration{0, time.Hour, -time.Hour} { // of the clock that made the time stamp
		pod := testPod("web")
		at := metav1.NewTime(noon.Add(30*time.Second + step))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
		w := &worker{k: &Kubelet{now: func() time.Time { return noon }}, mem: newMemory()}
		w.takePod(pod)
		for passed, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 10 * time.Second: 20 * time.Second, time.Minute: 0} {
			in := input{pod: w.pod, mem: w.mem, now: noon.Add(passed)}
			if got := in.endReason().grace; got != want {
				t.Errorf("stepped by %s, %s later %s are left, want %s", step, passed, got, want)
			}
		}
		// Another deletion with a shorter grace counts from when it is heard of.
		w.k.now = func() time.Time { return noon.Add(10 * time.Second) }
		next, five := pod.DeepCopy(), int64(5)
		later := metav1.NewTime(at.Add(-15 * time.Second))
		next.DeletionTimestamp, next.DeletionGracePeriodSeconds = &later, &five
		w.takePod(next)
		if got := (input{pod: w.pod, mem: w.mem, now: noon.Add(11 * time.Second)}).endReason().grace; got != 4*time.Second {
			t.Errorf("stepped by %s: of the shorter grace %s are left", step, got)
		}
	}
}

// An end that was written down by a clock ahead of ours holds no restart up for longer than the back-off.
func TestBackoffByAClockThatIsSet(t *testing.T) {
	for _, x := range []struct {
		name  string
		ended time.Time
		wait  time.Duration
	}{
		{"just now", noon, 10 * time.Second},
		{"a while ago", ago(4 * time.Second), 6 * time.Second},
		{"in an hour", noon.Add(time.Hour), 10 * time.Second},
	} {
		mem := newMemory()
		c := dead("web", 1, 1, x.ended)
		c.CreatedAt = x.ended.Add(-time.Second)
		c.FinishedAt = mem.ended(c.ID, x.ended, noon)
		if at, _ := mem.container("web").restartAt(&c); at.Sub(noon) != x.wait {
			t.Errorf("%s: it waits %s, want %s", x.name, at.Sub(noon), x.wait)
		}
		// What was once told from the clock stays, whatever becomes of that.
		if again := mem.ended(c.ID, x.ended, noon.Add(-time.Hour)); !again.Equal(c.FinishedAt) {
			t.Errorf("%s: it ended at %s, and then at %s", x.name, c.FinishedAt, again)
		}
	}
}
