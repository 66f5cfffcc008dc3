package kubelet

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
)

var noon = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// stage builds an input for decide, step by step.
type stage struct{ in input }

func at(pod *corev1.Pod) *stage {
	in := input{pod: pod, mem: newMemory(), now: noon}
	in.mem.admitted = true
	if pod != nil {
		if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
			in.mem.deletionSeen = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		}
		pod.UID = "u1"
		in.view.UID = "u1"
	}
	return &stage{in}
}

func (s *stage) sandbox() *stage {
	s.in.view.Sandbox = &cri.Sandbox{PodUID: "u1", Whole: true, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2")}}
	return s
}

func (s *stage) halfSandbox() *stage {
	s.sandbox().in.view.Sandbox.Whole = false
	return s
}

func (s *stage) volumes() *stage { s.in.mem.volumes = true; return s }

func (s *stage) image(name string) *stage { s.in.mem.container(name).image = true; return s }

func (s *stage) has(c cri.Container) *stage {
	c.PodUID = "u1"
	if c.CreatedAt.IsZero() {
		c.CreatedAt = c.StartedAt
	}
	s.in.view.Containers = append(s.in.view.Containers, c)
	return s
}

func (s *stage) flying(a action) *stage {
	s.in.mem.flights[a.key()] = flight{act: a, deadline: noon.Add(a.grace)}
	return s
}

func (s *stage) failed(a action, until time.Time) *stage {
	s.in.mem.failures[a.key()] = &failure{reason: "X", at: noon, until: until, delay: time.Second}
	return s
}

func (s *stage) settled() *stage  { s.in.settled = true; return s }
func (s *stage) tornDown() *stage { s.in.mem.tornDown, s.in.mem.forgotten = true, true; return s }

func run(name string, attempt int) cri.Container {
	return cri.Container{ID: name + string(rune('0'+attempt)), Name: name, Attempt: attempt, State: cri.Running, StartedAt: ago(time.Minute)}
}

func dead(name string, attempt int, code int32, when time.Time) cri.Container {
	c := run(name, attempt)
	c.State, c.ExitCode, c.FinishedAt = cri.Exited, code, when
	return c
}

func deleting(after time.Duration, grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		t := metav1.NewTime(noon.Add(after))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &t, &grace
	}
}

func two(p *corev1.Pod) {
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "app", Image: "app:1"})
}

func TestDecide(t *testing.T) {
	start := action{verb: startContainer, container: "web"}
	cases := []struct {
		name string
		at   *stage
		want string // actions
		wake time.Duration
		done bool
	}{
		{"a new pod begins all stages at once", at(testPod("web", two)), "volumes sandbox image/web image/app", 0, false},
		{"nothing before admission", func() *stage { s := at(testPod("web")); s.in.mem.admitted = false; return s }(), "", 0, false},
		{"no start before the sandbox", at(testPod("web")).volumes().image("web").flying(action{verb: makeSandbox}), "", 0, false},
		{"no start before the volumes", at(testPod("web")).sandbox().image("web").flying(action{verb: setUpVolumes}), "", 0, false},
		{"start when all is there", at(testPod("web", two)).sandbox().volumes().image("web").image("app"), "start/web start/app", 0, false},
		{"one image does not hold up the other", at(testPod("web", two)).sandbox().volumes().image("web"), "start/web image/app", 0, false},
		{"a start under way is not begun again", at(testPod("web")).sandbox().volumes().image("web").flying(start), "", 0, false},
		{"a half-made container is made anew", at(testPod("web")).sandbox().volumes().has(cri.Container{ID: "w0", Name: "web"}), "remove/w0", 0, false},
		{"but not while it is being made", at(testPod("web")).sandbox().volumes().has(cri.Container{ID: "w0", Name: "web"}).flying(start), "", 0, false},
		{"a running pod needs nothing", at(testPod("web")).sandbox().has(run("web", 0)), "", 0, false},
		{"the first restart is at once", at(testPod("web")).sandbox().volumes().image("web").has(dead("web", 0, 1, noon)), "start/web", 0, false},
		{"the second waits", at(testPod("web")).sandbox().volumes().has(dead("web", 1, 1, ago(3*time.Second))), "", 7 * time.Second, false},
		{"the third waits longer", at(testPod("web")).sandbox().volumes().has(dead("web", 2, 1, ago(3*time.Second))), "", 17 * time.Second, false},
		{"a good run ends the back-off", at(testPod("web")).sandbox().volumes().image("web").
			has(func() cri.Container { c := dead("web", 7, 1, noon); c.CreatedAt = ago(time.Hour); return c }()), "start/web", 0, false},
		{"never is not restarted, it ends", at(testPod("web", policy(corev1.RestartPolicyNever))).sandbox().settled().has(dead("web", 0, 1, noon)), "remove/web0", 0, false},
		{"not before the status is known", at(testPod("web", policy(corev1.RestartPolicyNever))).sandbox().has(dead("web", 0, 1, noon)), "", 0, false},
		{"on failure restarts failures only", at(testPod("web", policy(corev1.RestartPolicyOnFailure), two)).sandbox().volumes().image("web").
			has(dead("web", 0, 1, noon)).has(dead("app", 0, 0, noon)), "start/web", 0, false},
		{"a lost sandbox is made again before the restart", at(testPod("web")).halfSandbox().volumes().has(dead("web", 0, 137, noon)), "sandbox image/web", 0, false},
		{"what runs in a lost sandbox is stopped first", at(testPod("web")).halfSandbox().volumes().has(run("web", 0)), "stop/web0/30", 0, false},
		{"a failed step waits", at(testPod("web")).volumes().image("web").failed(action{verb: makeSandbox}, noon.Add(5*time.Second)), "", 5 * time.Second, false},
		{"old dead containers go, the last but one stays", at(testPod("web")).sandbox().has(dead("web", 0, 1, ago(time.Hour))).
			has(dead("web", 1, 1, ago(time.Hour))).has(run("web", 2)), "remove/web0", 0, false},
		{"of two that run the older is stopped", at(testPod("web")).sandbox().has(run("web", 0)).has(run("web", 1)), "stop/web0/1", 0, false},

		{"a deleted pod is stopped, all at once", at(testPod("web", two, deleting(30*time.Second, 30))).sandbox().has(run("web", 0)).has(run("app", 0)), "stop/web0/30 stop/app0/30", 0, false},
		{"what is left of the grace", at(testPod("web", deleting(10*time.Second, 30))).sandbox().has(run("web", 0)), "stop/web0/10", 0, false},
		{"no grace is left", at(testPod("web", deleting(-time.Minute, 30))).sandbox().has(run("web", 0)), "stop/web0/0", 0, false},
		{"a stop under way goes on", at(testPod("web", deleting(30*time.Second, 30))).sandbox().has(run("web", 0)).
			flying(action{verb: stopContainer, id: "web0", grace: 30 * time.Second}), "", 0, false},
		{"a shorter grace overtakes", at(testPod("web", deleting(5*time.Second, 5))).sandbox().has(run("web", 0)).
			flying(action{verb: stopContainer, id: "web0", grace: 30 * time.Second}), "stop/web0/5", 0, false},
		{"it is not taken apart while a start is under way", at(testPod("web", deleting(30*time.Second, 30))).sandbox().settled().flying(start), "", 0, false},
		{"nor while the sandbox is being made", at(testPod("web", deleting(30*time.Second, 30))).settled().flying(action{verb: makeSandbox}), "", 0, false},
		{"containers go before the sandbox", at(testPod("web", deleting(30*time.Second, 30))).sandbox().settled().has(dead("web", 0, 0, noon)), "remove/web0", 0, false},
		{"then the sandbox", at(testPod("web", deleting(30*time.Second, 30))).sandbox().settled(), "removeSandbox", 0, false},
		{"then the volumes", at(testPod("web", deleting(30*time.Second, 30))).settled(), "tearDown", 0, false},
		{"then the object", at(testPod("web", deleting(30*time.Second, 30))).settled().tornDown(), "delete", 0, false},
		{"then nothing is left", func() *stage {
			s := at(testPod("web", deleting(30*time.Second, 30))).settled().tornDown()
			s.in.mem.deleted = true
			return s
		}(), "", 0, true},
		{"an orphan is stopped soon", at(nil).sandbox().has(run("web", 0)), "stop/web0/1", 0, false},
		{"an orphan needs no status", at(nil).sandbox().has(dead("web", 0, 0, noon)), "remove/web0", 0, false},
		{"an orphan is done without the API", at(nil).tornDown(), "", 0, true},
		{"a finished pod stays in the API", func() *stage {
			s := at(testPod("web", policy(corev1.RestartPolicyNever))).settled()
			s.in.pod.Status.Phase = corev1.PodSucceeded
			s.in.mem.tornDown = true
			return s
		}(), "", 0, false},
		{"a rejected pod starts nothing", func() *stage {
			s := at(testPod("web")).settled()
			s.in.mem.admitted, s.in.mem.rejected = false, &verdict{"OutOfcpu", "x"}
			return s
		}(), "tearDown", 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := decide(c.at.in)
			var keys []string
			for _, a := range p.actions {
				keys = append(keys, a.key())
			}
			if got := strings.Join(keys, " "); got != c.want {
				t.Errorf("actions %q, want %q", got, c.want)
			}
			wake := time.Duration(0)
			if !p.wake.IsZero() {
				wake = p.wake.Sub(noon)
			}
			if wake != c.wake || p.done != c.done {
				t.Errorf("wake in %s, want %s; done %v, want %v", wake, c.wake, p.done, c.done)
			}
		})
	}
}

func TestActiveDeadlineIsPlanned(t *testing.T) {
	s := at(testPod("web")).sandbox().has(run("web", 0))
	seconds, began := int64(90), metav1.NewTime(ago(time.Minute))
	s.in.pod.Spec.ActiveDeadlineSeconds, s.in.pod.Status.StartTime = &seconds, &began
	if p := decide(s.in); len(p.actions) > 0 || p.wake.Sub(noon) != 30*time.Second {
		t.Errorf("%+v", p)
	}
	s.in.now = noon.Add(30 * time.Second)
	if p := decide(s.in); len(p.actions) != 1 || p.actions[0].verb != stopContainer {
		t.Errorf("%+v", p)
	}
}

func TestBackoffGrows(t *testing.T) {
	cm := &containerMemory{}
	now := noon
	cm.restarted(nil, now)
	var waits []time.Duration
	for attempt := range 9 {
		c := dead("web", attempt, 1, now.Add(time.Second))
		at, _ := cm.restartAt(&c)
		now = c.FinishedAt
		wait := time.Duration(0)
		if !at.IsZero() {
			wait = at.Sub(now)
			now = at
		}
		waits = append(waits, wait/time.Second)
		cm.restarted(&c, now)
	}
	if want := []time.Duration{0, 10, 20, 40, 80, 160, 300, 300, 300}; !slices.Equal(waits, want) {
		t.Errorf("waits %d, want %d", waits, want)
	}
	good := dead("web", 9, 1, now.Add(11*time.Minute))
	if at, _ := cm.restartAt(&good); !at.IsZero() {
		t.Error("a good run does not end the back-off")
	}
	cm.restarted(&good, good.FinishedAt)
	if cm.delay != crashBackoff {
		t.Errorf("after a good run the back-off begins at %s", cm.delay)
	}
}

func TestRestartCountsNeverFall(t *testing.T) {
	pod := testPod("web")
	for _, c := range []struct {
		status corev1.ContainerStatus
		want   int
	}{
		{corev1.ContainerStatus{Name: "other", RestartCount: 5, ContainerID: "x"}, 0},
		{corev1.ContainerStatus{Name: "web"}, 0},
		{corev1.ContainerStatus{Name: "web", RestartCount: 2, ContainerID: "x"}, 3},
	} {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{c.status}
		if got := nextAttempt(pod, "web"); got != c.want {
			t.Errorf("%+v: attempt %d, want %d", c.status, got, c.want)
		}
	}
}
