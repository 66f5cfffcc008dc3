package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client"
	"minik8s/internal/kubelet/cri"
)

// withDebug adds ephemeral containers; "a>web" is one that wants to see the processes of web.
func withDebug(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			name, target, _ := strings.Cut(name, ">")
			e := corev1.EphemeralContainer{TargetContainerName: target}
			e.Name, e.Image = name, "app:1"
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, e)
		}
	}
}

// ran is what the status says of an ephemeral container that the runtime may not have any more.
func ran(name string, state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: name, ContainerID: "containerd://x", State: state}}
	}
}

func TestDecideEphemeralContainers(t *testing.T) {
	never := policy(corev1.RestartPolicyNever)
	share := func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(true) }
	up := func(change ...func(*corev1.Pod)) *stage {
		s := at(testPod("web", change...)).sandbox().volumes().settled()
		for _, c := range everyContainer(s.in.pod) {
			s.image(c.Name)
		}
		return s
	}
	over := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	on := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, c := range []struct {
		name string
		at   *stage
		want string
	}{
		{"beside the others", up(withDebug("d")).has(run("web", 0)), "start/d"},
		{"several at once", up(withDebug("d", "e")).has(run("web", 0)), "start/d start/e"},
		{"its image first", at(testPod("web", withDebug("d"))).sandbox().volumes().has(run("web", 0)), "image/d"},
		{"its volumes first, after a start of the daemon", at(testPod("web", withDebug("d"))).sandbox().image("d").has(run("web", 0)), "volumes"},
		{"while init containers run", up(withInits("a"), withDebug("d")).has(run("a", 0)), "start/d"},
		{"once", up(withDebug("d")).has(run("web", 0)).has(run("d", 0)), ""},
		{"not again after a failure", up(withDebug("d")).has(run("web", 0)).has(dead("d", 0, 1, noon)), ""},
		{"nor if the runtime has lost its end", up(withDebug("d"), ran("d", over)).has(run("web", 0)), ""},
		{"nor if it has lost the run", up(withDebug("d"), ran("d", on)).has(run("web", 0)), ""},
		{"nor in a new sandbox", func() *stage {
			s := up(withDebug("d")).has(run("web", 0)).has(dead("d", 0, 137, noon))
			s.in.view.Sandbox.ID = "next"
			return s
		}(), ""},
		{"a half-made one is made anew", up(withDebug("d")).has(run("web", 0)).has(cri.Container{ID: "d0", Name: "d"}), "remove/d0"},
		{"with its target", up(withDebug("d>web")).has(run("web", 0)), "start/d"},
		{"not without its target", up(withDebug("d>web")).has(dead("web", 3, 1, noon)), ""},
		{"its image is had meanwhile", at(testPod("web", withDebug("d>web"))).sandbox().volumes().has(dead("web", 3, 1, noon)), "image/d"},
		{"where all share their processes it needs none", up(withDebug("d>web"), share).has(dead("web", 3, 1, noon)), "start/d"},
		{"it does not keep the pod going", up(withDebug("d"), never).has(run("d", 0)).has(dead("web", 0, 0, noon)), "stop/d0/30"},
		{"it ends with the others", up(withDebug("d"), withInits("s*"), deleting(30*time.Second, 30)).
			has(run("s", 0)).has(run("web", 0)).has(run("d", 0)), "stop/web0/30 stop/d0/30"},
		{"it is not begun in a pod that ends", up(withDebug("d"), deleting(30*time.Second, 30)).has(run("web", 0)), "stop/web0/30"},
	} {
		if got := keysOf(decide(c.at.in)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestEphemeralStatus(t *testing.T) {
	never := policy(corev1.RestartPolicyNever)
	show := func(s *stage) string {
		st := statusFor(s.in, host)
		var parts []string
		for _, c := range st.EphemeralContainerStatuses {
			what := "?"
			switch {
			case c.State.Running != nil:
				what = "runs"
			case c.State.Terminated != nil:
				what = fmt.Sprint(c.State.Terminated.Reason, c.State.Terminated.ExitCode)
			case c.State.Waiting != nil:
				what = c.State.Waiting.Reason + c.State.Waiting.Message
			}
			if c.Ready || c.Started != nil || c.RestartCount != 0 || c.LastTerminationState.Terminated != nil {
				what += "!"
			}
			parts = append(parts, c.Name+":"+what)
		}
		ready := conditionOf(st.Conditions, corev1.PodReady)
		return string(st.Phase) + " " + string(ready.Status) + " " + strings.Join(parts, " ")
	}
	pod := func(change ...func(*corev1.Pod)) *stage { return at(testPod("web", change...)).sandbox() }
	on := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, c := range []struct {
		name string
		at   *stage
		want string
	}{
		{"not yet", pod(withDebug("e", "d")).has(run("web", 0)), "Running True d:ContainerCreating e:ContainerCreating"},
		{"no image", pod(withDebug("d")).has(run("web", 0)).failed(action{verb: ensureImage, container: "d"}, noon.Add(time.Second)), "Running True d:X"},
		{"no target", pod(withDebug("d>web")).image("d").has(dead("web", 0, 1, noon)), `Running False d:ContainerCreatingthe target container "web" is not running`},
		{"runs", pod(withDebug("d")).has(run("web", 0)).has(run("d", 0)), "Running True d:runs"},
		{"has failed", pod(withDebug("d")).has(run("web", 0)).has(dead("d", 0, 7, noon)), "Running True d:Error7"},
		{"is lost", pod(withDebug("d"), ran("d", on)).has(run("web", 0)), "Running True d:ContainerStatusUnknown137"},
		{"alone it makes no pod run", pod(withDebug("d")).has(run("d", 0)), "Pending False d:runs"},
		{"the pod has ended when it has", pod(withDebug("d"), never).has(dead("web", 0, 0, noon)).has(run("d", 0)), "Running False d:runs"},
		{"its end does not count", pod(withDebug("d"), never).has(dead("web", 0, 0, noon)).has(dead("d", 0, 7, noon)), "Succeeded False d:Error7"},
	} {
		if got := show(c.at); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// addDebug writes ephemeral containers as the subresource would.
func (b *bed) addDebug(name string, add ...corev1.EphemeralContainer) {
	b.t.Helper()
	obj, err := b.api.Get(b.t.Context(), podKey(name))
	if err != nil {
		b.t.Fatal(err)
	}
	p := obj.(*corev1.Pod).DeepCopy()
	p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, add...)
	p.ResourceVersion = ""
	if _, err := b.api.Update(b.t.Context(), p, client.WriteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// The objects that an ephemeral container names are read though nothing in the pod named them before.
func TestEphemeralContainerBringsObjects(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(testPod("web"))
	b.api.await(t, "web", "running", running)
	e := corev1.EphemeralContainer{}
	e.Name, e.Image = "d", "app:1"
	e.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}}}}
	b.addDebug("web", e)
	b.api.await(t, "web", "waiting for the secret", func(p *corev1.Pod) bool {
		st := statusOf(p.Status.EphemeralContainerStatuses, "d")
		return st != nil && st.State.Waiting != nil && st.State.Waiting.Reason == "CreateContainerConfigError"
	})
	s := &corev1.Secret{Data: map[string][]byte{"k": []byte("v")}}
	s.Name, s.Namespace = "s", "default"
	if _, err := b.api.Create(t.Context(), s, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.api.await(t, "web", "debugged", func(p *corev1.Pod) bool {
		st := statusOf(p.Status.EphemeralContainerStatuses, "d")
		return st != nil && st.State.Running != nil
	})
}

func TestRealEphemeralContainer(t *testing.T) {
	b := newRealBed(t)
	b.create(shell("web", "mkdir /w; echo mine > /w/x; "+forever))
	before := b.api.await(t, "web", "running", running)
	var d corev1.EphemeralContainer
	d.EphemeralContainerCommon = corev1.EphemeralContainerCommon(shellContainer("d", "cat /proc/1/root/w/x; hostname; "+forever))
	d.TargetContainerName = "main"
	e := *d.DeepCopy()
	e.Name, e.TargetContainerName, e.Command = "e", "", []string{"sh", "-c", "echo $PPID; exit 3"}
	b.addDebug("web", d, e)
	debugged := func(p *corev1.Pod) bool {
		d, e := statusOf(p.Status.EphemeralContainerStatuses, "d"), statusOf(p.Status.EphemeralContainerStatuses, "e")
		return d != nil && d.State.Running != nil && e != nil && e.State.Terminated != nil && e.State.Terminated.ExitCode == 3
	}
	now := b.api.await(t, "web", "debugged", debugged)
	if was, is := before.Status.ContainerStatuses[0], now.Status.ContainerStatuses[0]; was.ContainerID != is.ContainerID || !running(now) {
		t.Errorf("%+v became %+v", was, is)
	}
	eventually(t, "it sees the files of its target", func() error {
		if got := b.logs("web", "d", &corev1.PodLogOptions{TailLines: new(int64(2))}); got != "mine\nweb\n" {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	if got := b.logs("web", "e", &corev1.PodLogOptions{}); got != "0\n" {
		t.Errorf("one without a target is the child of %q, not the first of its namespace", got)
	}
	b.reopen()
	after := b.api.await(t, "web", "debugged still", debugged)
	if was, is := now.Status, after.Status; !equalStatus(&was, &is) {
		t.Errorf("%+v became\n%s", was, statusText(after))
	}
	b.remove("web")
	b.nothingLeft()
}
