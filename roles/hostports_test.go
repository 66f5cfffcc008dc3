package roles_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// One port of the machine is three pods': by its own address, by loopback, and by UDP. A fourth that wants what one has waits.
func TestHostPorts(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	pod := func(name, ip string, protocol corev1.Protocol) *corev1.Pod {
		pod := shell(name, "")
		pod.Spec.Containers[0] = corev1.Container{Name: "web", Image: "minik8s/hello", ImagePullPolicy: corev1.PullIfNotPresent,
			Ports: []corev1.ContainerPort{{HostIP: ip, HostPort: 5480, ContainerPort: 80, Protocol: protocol}}}
		p.create(c, pod)
		return pod
	}
	const machine = "192.0.2.1"
	pod("loopback", "127.0.0.1", corev1.ProtocolTCP)
	pod("machine", machine, corev1.ProtocolTCP)
	pod("datagrams", machine, corev1.ProtocolUDP)
	for _, name := range []string{"loopback", "machine", "datagrams"} {
		p.running(c, name)
	}
	p.eventually("each answers", func() bool {
		return answer("127.0.0.1:5480") == "loopback" && answer(machine+":5480") == "machine" && answerByUDP(machine+":5480") == "datagrams"
	})
	pod("second", machine, corev1.ProtocolTCP)
	p.eventually("the second one is refused", func() bool {
		for _, cond := range p.pod(c, "second").Status.Conditions {
			if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
				return true
			}
		}
		return false
	})
	if got := answer(fmt.Sprint(machine, ":5480")); got != "machine" {
		t.Errorf("it is answered by %q", got)
	}
}
