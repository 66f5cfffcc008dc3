package kubelet

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// withInits puts init containers before web; a name that ends in * is a sidecar.
func withInits(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			c := corev1.Container{Name: strings.TrimSuffix(name, "*"), Image: "app:1"}
			if strings.HasSuffix(name, "*") {
				always := corev1.ContainerRestartPolicyAlways
				c.RestartPolicy = &always
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
}

func keysOf(p plan) string {
	var keys []string
	for _, a := range p.actions {
		keys = append(keys, a.key())
	}
	return strings.Join(keys, " ")
}

func TestDecideInitContainers(t *testing.T) {
	never, onFailure := policy(corev1.RestartPolicyNever), policy(corev1.RestartPolicyOnFailure)
	up := func(change ...func(*corev1.Pod)) *stage {
		s := at(testPod("web", change...)).sandbox().volumes().settled()
		for _, c := range allContainers(s.in.pod) {
			s.image(c.Name)
		}
		return s
	}
	gone := deleting(30*time.Second, 30)
	for _, c := range []struct {
		name string
		at   *stage
		want string
	}{
		{"a new pod begins with the first", at(testPod("web", withInits("a", "b"))), "volumes sandbox image/a"},
		{"the first", up(withInits("a", "b")), "start/a"},
		{"none beside it", up(withInits("a", "b")).has(run("a", 0)), ""},
		{"the second", up(withInits("a", "b")).has(dead("a", 0, 0, noon)), "start/b"},
		{"then the main one", up(withInits("a", "b")).has(dead("a", 0, 0, noon)).has(dead("b", 0, 0, noon)), "start/web"},
		{"and none of them again", up(withInits("a")).has(dead("a", 0, 0, noon)).has(dead("web", 0, 1, noon)), "start/web"},
		{"not even if the runtime has lost it", up(withInits("a")).has(run("web", 0)), ""},
		{"a failure is tried again", up(withInits("a")).has(dead("a", 0, 1, noon)), "start/a"},
		{"also on failure", up(withInits("a"), onFailure).has(dead("a", 0, 1, noon)), "start/a"},
		{"never is the end", up(withInits("a"), never).has(dead("a", 0, 1, noon)), "remove/a0"},
		{"never, but it did well", up(withInits("a"), never).has(dead("a", 0, 0, noon)), "start/web"},
		{"a new sandbox begins anew", func() *stage {
			s := up(withInits("a")).has(dead("a", 0, 0, ago(time.Minute))).has(dead("web", 0, 137, ago(time.Minute)))
			s.in.view.Sandbox.ID = "next"
			return s
		}(), "start/a"},
		{"not for a clock that was set back", func() *stage {
			s := up(withInits("a")).has(dead("a", 0, 0, ago(time.Hour)))
			s.in.view.Sandbox.CreatedAt = noon
			return s
		}(), "start/web"},
		{"a lost sandbox too", up(withInits("a")).halfSandbox().has(dead("a", 0, 0, noon)).has(dead("web", 0, 137, noon)), "sandbox"},

		{"a sidecar first", up(withInits("s*", "a")), "start/s"},
		{"it is not waited for to its end", up(withInits("s*", "a")).has(run("s", 0)), "start/a"},
		{"one that fell is started while others run", up(withInits("s*")).has(dead("s", 0, 0, noon)).has(run("web", 0)), "start/s"},
		{"also in a pod that never restarts", up(withInits("s*"), never).has(dead("s", 0, 1, noon)).has(run("web", 0)), "start/s"},
		{"it does not keep the pod going", up(withInits("s*", "z*"), never).has(run("s", 0)).has(run("z", 0)).has(dead("web", 0, 0, noon)), "stop/z0/30"},
		{"the first is stopped last", up(withInits("s*", "z*"), never).has(run("s", 0)).has(dead("z", 0, 0, noon)).has(dead("web", 0, 0, noon)), "stop/s0/30"},
		{"main containers are stopped first", up(withInits("s*"), gone).has(run("s", 0)).has(run("web", 0)), "stop/web0/30"},
		{"a sidecar waits for them", up(withInits("s*"), gone).has(run("s", 0)).has(run("web", 0)).
			flying(action{verb: stopContainer, container: "web", id: "web0", grace: 30 * time.Second}), ""},
		{"and has a moment at least", up(withInits("s*"), deleting(-time.Minute, 30)).has(run("s", 0)), "stop/s0/2"},
		{"an orphan is stopped as one", func() *stage {
			s := up(withInits("s*")).has(run("s", 0)).has(run("web", 0))
			s.in.pod = nil
			return s
		}(), "stop/s0/1 stop/web0/1"},
	} {
		if got := keysOf(decide(c.at.in)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestInitStatus(t *testing.T) {
	show := func(s *stage) string {
		st := statusFor(s.in, host)
		var parts []string
		for _, c := range append(st.InitContainerStatuses, st.ContainerStatuses...) {
			what := "?"
			switch {
			case c.State.Running != nil:
				what = "runs"
			case c.State.Terminated != nil:
				what = c.State.Terminated.Reason
			case c.State.Waiting != nil:
				what = c.State.Waiting.Reason
			}
			if c.Ready {
				what += "+"
			}
			parts = append(parts, c.Name+":"+what)
		}
		init := conditionOf(st.Conditions, corev1.PodInitialized)
		return string(st.Phase) + " " + strings.Join(parts, " ") + " " + string(init.Status) + init.Message
	}
	pod := func(names ...string) *stage { return at(testPod("web", withInits(names...))).sandbox() }
	never := func(names ...string) *stage {
		return at(testPod("web", withInits(names...), policy(corev1.RestartPolicyNever))).sandbox()
	}
	for _, c := range []struct {
		name string
		at   *stage
		want string
	}{
		{"new", pod("a", "b"), "Pending a:PodInitializing b:PodInitializing web:PodInitializing Falsecontainers with incomplete status: [a b]"},
		{"first", pod("a", "b").has(run("a", 0)), "Pending a:runs+ b:PodInitializing web:PodInitializing Falsecontainers with incomplete status: [a b]"},
		{"second", pod("a", "b").has(dead("a", 0, 0, noon)), "Pending a:Completed+ b:PodInitializing web:PodInitializing Falsecontainers with incomplete status: [b]"},
		{"main", pod("a").has(dead("a", 0, 0, noon)).has(run("web", 0)), "Running a:Completed+ web:runs+ True"},
		{"crash", pod("a").has(dead("a", 1, 1, noon)), "Pending a:CrashLoopBackOff web:PodInitializing Falsecontainers with incomplete status: [a]"},
		{"failed", never("a").has(dead("a", 0, 1, noon)), "Failed a:Error web:PodInitializing Falsecontainers with incomplete status: [a]"},
		{"done, the sidecar still runs", never("s*").has(run("s", 0)).has(dead("web", 0, 0, noon)), "Running s:runs+ web:Completed True"},
		{"done", never("s*").has(dead("s", 0, 0, noon)).has(dead("web", 0, 0, noon)), "Succeeded s:Completed web:Completed True"},
	} {
		if got := show(c.at); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestInitContainersInTurn(t *testing.T) {
	b := newBed(t)
	b.start()
	p := b.create(testPod("web", withInits("first", "side*", "second")))
	stands := func(what string, n int, ok func(*corev1.ContainerStatus) bool) {
		t.Helper()
		b.api.await(t, "web", what, func(p *corev1.Pod) bool {
			return p != nil && len(p.Status.InitContainerStatuses) == 3 && ok(&p.Status.InitContainerStatuses[n])
		})
	}
	runs := func(c *corev1.ContainerStatus) bool { return c.State.Running != nil }
	stands("at the first", 0, runs)
	b.rt.Exit(string(p.UID), "first", 0, false)
	stands("with its sidecar", 1, runs)
	stands("at the second", 2, runs)
	b.restart()
	b.rt.Exit(string(p.UID), "second", 0, false)
	got := b.api.await(t, "web", "running", running)
	if c := conditionOf(got.Status.Conditions, corev1.PodInitialized); c.Status != corev1.ConditionTrue {
		t.Errorf("%s", statusText(got))
	}
	b.rt.Reboot()
	stands("at the first again", 0, runs)
	b.rt.Exit(string(p.UID), "first", 0, false)
	stands("at the second again", 2, runs)
	b.rt.Exit(string(p.UID), "second", 0, false)
	b.api.await(t, "web", "running again", running)
	b.delete("web")
	b.api.await(t, "web", "gone", goneNow)
	b.nothingLeft()
}

func TestAJobsPodEndsBesideItsSidecar(t *testing.T) {
	b := newBed(t)
	b.start()
	p := b.create(testPod("job", withInits("side*"), policy(corev1.RestartPolicyNever)))
	b.api.await(t, "job", "running", running)
	b.rt.Exit(string(p.UID), "web", 0, false)
	got := b.api.await(t, "job", "succeeded", hasPhase(corev1.PodSucceeded))
	if st := got.Status.InitContainerStatuses[0]; st.State.Terminated == nil {
		t.Errorf("%s", statusText(got))
	}
	b.sound()
}
