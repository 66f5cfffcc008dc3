package status

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/plan"
)

// ReasonLost is the reason of a termination whose exit code is not known.
const ReasonLost = "ContainerStatusUnknown"

// Of makes the pod's status from in. What others own in the status (conditions that are not the kubelet's) is kept.
// hostIP is the node's address, and may be invalid.
func Of(in plan.Input, hostIP netip.Addr) corev1.PodStatus {
	pod := in.Pod
	if podspec.Finished(pod.Status.Phase) && in.State.Rejected == nil {
		return pod.Status // how a pod ended does not change any more
	}
	st := *pod.Status.DeepCopy()
	st.ObservedGeneration = pod.Generation
	st.QOSClass = podspec.QOSClassOf(pod)
	if st.StartTime == nil {
		now := metav1.NewTime(in.Now).Rfc3339Copy()
		st.StartTime = &now
	}
	if hostIP.IsValid() {
		st.HostIP, st.HostIPs = hostIP.String(), []corev1.HostIP{{IP: hostIP.String()}}
	}
	if v := in.State.Rejected; v != nil {
		st.Phase, st.Reason, st.Message = corev1.PodFailed, v.Reason, "Pod was rejected: "+v.Message
		return st
	}
	setAddresses(&st, in)
	st.ContainerStatuses, st.InitContainerStatuses = containerStatuses(in), initStatuses(in)
	st.EphemeralContainerStatuses = ephemeralStatuses(in)
	st.Phase = phaseOf(in, st.ContainerStatuses)
	if plan.DeadlineExceeded(pod, in.Now) && !endedInTime(pod, st.ContainerStatuses) {
		st.Reason, st.Message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
		if !in.Active() {
			failUnstarted(&st)
		}
	}
	// Controllers that count finished pods, such as jobs', must not wait for one that never started.
	if pod.DeletionTimestamp != nil && !in.Active() && !podspec.Finished(st.Phase) {
		failUnstarted(&st)
	}
	shutdown := endedByShutdown(in)
	if shutdown {
		failByShutdown(pod, &st)
	}
	if podspec.Finished(st.Phase) {
		for i := range st.ContainerStatuses {
			st.ContainerStatuses[i].Ready = false
		}
	}
	setConditions(in, &st)
	if shutdown {
		setDisrupted(in, &st)
	}
	return st
}

// failUnstarted fails a pod that ends before all of its containers have started.
func failUnstarted(st *corev1.PodStatus) {
	st.Phase = corev1.PodFailed
	endUnstarted(st.ContainerStatuses)
	endUnstarted(st.InitContainerStatuses)
	endUnstarted(st.EphemeralContainerStatuses)
}

// endUnstarted ends the containers that wait for a start which will not come, in Kubernetes' words.
func endUnstarted(list []corev1.ContainerStatus) {
	for i := range list {
		if list[i].State.Waiting != nil {
			list[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137,
				Reason: ReasonLost, Message: "The container could not be located when the pod was terminated"}}
		}
	}
}

// setAddresses takes the pod's addresses from its sandbox. A pod that has ended keeps its last ones; one that
// waits for a new sandbox, after a reboot, has none, since they may be another pod's by now.
func setAddresses(st *corev1.PodStatus, in plan.Input) {
	sandbox := in.View.Sandbox
	if sandbox == nil && in.Termination() == nil {
		st.PodIP, st.PodIPs = "", nil
	}
	if sandbox == nil || len(sandbox.Addresses) == 0 {
		return
	}
	st.PodIP = sandbox.Addresses[0].String()
	st.PodIPs = nil
	for _, a := range sandbox.Addresses {
		st.PodIPs = append(st.PodIPs, corev1.PodIP{IP: a.String()})
	}
}

// Equal compares as the API would: nil and empty are equal, and times that are the same instant.
func Equal(a, b *corev1.PodStatus) bool { return equality.Semantic.DeepEqual(a, b) }
