package kubelet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan/plantest"
	"minik8s/internal/kubelet/status"
)

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
	if _, err := b.api.Update(b.t.Context(), p, client.WriteOptions{Subresource: "ephemeralcontainers"}); err != nil {
		b.t.Fatal(err)
	}
}

// The objects that an ephemeral container names are read though nothing in the pod named them before.
func TestEphemeralContainerBringsObjects(t *testing.T) {
	b := newBed(t)
	b.start()
	b.create(plantest.Pod("web"))
	b.api.await(t, "web", "running", running)
	e := corev1.EphemeralContainer{}
	e.Name, e.Image = "d", "app:1"
	e.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}}}}
	b.addDebug("web", e)
	b.api.await(t, "web", "waiting for the secret", func(p *corev1.Pod) bool {
		st := podspec.ContainerStatus(&p.Status, "d")
		return st != nil && st.State.Waiting != nil && st.State.Waiting.Reason == "CreateContainerConfigError"
	})
	s := &corev1.Secret{Data: map[string][]byte{"k": []byte("v")}}
	s.Name, s.Namespace = "s", "default"
	if _, err := b.api.Create(t.Context(), s, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.api.await(t, "web", "debugged", func(p *corev1.Pod) bool {
		st := podspec.ContainerStatus(&p.Status, "d")
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
		d, e := podspec.ContainerStatus(&p.Status, "d"), podspec.ContainerStatus(&p.Status, "e")
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
	if was, is := now.Status, after.Status; !status.Equal(&was, &is) {
		t.Errorf("%+v became\n%s", was, statusText(after))
	}
	b.remove("web")
	b.nothingLeft()
}
