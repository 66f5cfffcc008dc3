package connect

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

func newManager() *Manager {
	return New(Config{Now: time.Now, LogPath: func(pod *corev1.Pod, container string, attempt int) string {
		return fmt.Sprintf("%s/%s/%d.log", pod.Name, container, attempt)
	}})
}

func view(attempt int, state cri.ContainerState) cri.Pod {
	return cri.Pod{Containers: []cri.Container{{ID: fmt.Sprint("c", attempt), Name: "web", Attempt: attempt, State: state}}}
}

func TestWhichLogIsRead(t *testing.T) {
	said := func(attempt int32, st corev1.ContainerState) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://c", RestartCount: attempt, State: st}}
		}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for _, x := range []struct {
		name         string
		status       func(*corev1.Pod)
		view         cri.Pod
		previous     bool
		path, refuse string
		live         bool // it can be followed
	}{
		{name: "it runs", view: view(2, cri.Running), path: "web/web/2.log", live: true},
		{name: "it has ended", view: view(2, cri.Exited), path: "web/web/2.log"},
		{name: "only its status is left", status: said(3, corev1.ContainerState{}), path: "web/web/3.log"},
		{name: "the one before", view: view(2, cri.Running), previous: true, path: "web/web/1.log"},
		{name: "the one before, while it waits", status: said(2, waiting), view: view(2, cri.Exited), previous: true, path: "web/web/2.log"},
		{name: "none before", view: view(0, cri.Running), previous: true, refuse: `previous terminated container "web" in pod "web" not found`},
		{name: "not made yet", refuse: `container "web" in pod "web" is waiting to start: ContainerCreating`},
		{name: "not started yet", view: view(0, cri.Created), refuse: `container "web" in pod "web" is waiting to start: ContainerCreating`},
	} {
		m := newManager()
		pod := plantest.Pod("web")
		if x.status != nil {
			x.status(pod)
		}
		m.Snapshot().Publish(pod, false, x.view)
		s, err := m.get(pod.Namespace, "web")
		if err != nil {
			t.Fatal(err)
		}
		path, exited, err := m.logOf(s, "web", x.previous)
		if says := fmt.Sprint(err); path != x.path || err != nil && says != x.refuse || err == nil && x.refuse != "" {
			t.Errorf("%s: %q, %v; want %q, %q", x.name, path, err, x.path, x.refuse)
		}
		if err == nil && isClosed(exited) == x.live {
			t.Errorf("%s: ended is %v", x.name, isClosed(exited))
		}
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Who follows a log hears of the container's end, also when the pod is dropped; a name passes on to a newer pod.
func TestSnapshotsEnd(t *testing.T) {
	m := newManager()
	pod := plantest.Pod("web")
	follow := func() <-chan struct{} {
		t.Helper()
		s, err := m.get(pod.Namespace, "web")
		if err != nil {
			t.Fatal(err)
		}
		_, exited, err := m.logOf(s, "web", false)
		if err != nil || isClosed(exited) {
			t.Fatal("it does not run: ", err)
		}
		return exited
	}
	first := m.Snapshot()
	if first.Of(nil) {
		t.Error("published before Publish")
	}
	first.Publish(pod, false, view(0, cri.Running))
	exited := follow()
	first.Publish(pod, false, view(0, cri.Exited))
	if !isClosed(exited) || !first.Of(pod) {
		t.Error("the container's end is not heard of")
	}
	first.Publish(pod, false, view(1, cri.Running))
	exited = follow()
	newer := m.Snapshot()
	newer.Publish(plantest.Pod("web"), false, view(0, cri.Running))
	first.Publish(pod, true, view(1, cri.Running))
	first.Drop()
	if !isClosed(exited) {
		t.Error("the pod's end is not heard of")
	}
	if len(m.Pods()) != 1 {
		t.Error("the newer pod of that name is not there")
	}
	newer.Drop()
	if len(m.Pods()) != 0 {
		t.Error("a pod that was dropped is still there")
	}
}
