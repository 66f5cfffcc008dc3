package podspec

import corev1 "k8s.io/api/core/v1"

// Reference returns a reference, for Events, to a container of the pod, or to the pod if the name is empty.
func Reference(pod *corev1.Pod, name string) corev1.ObjectReference {
	ref := corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name,
		UID: pod.UID, ResourceVersion: pod.ResourceVersion}
	if name != "" {
		list := "spec.containers{"
		if InitContainer(pod, name) != nil {
			list = "spec.initContainers{"
		}
		if EphemeralContainer(pod, name) != nil {
			list = "spec.ephemeralContainers{"
		}
		ref.FieldPath = list + name + "}"
	}
	return ref
}
