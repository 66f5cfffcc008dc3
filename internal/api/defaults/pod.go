package defaults

import (
	corev1 "k8s.io/api/core/v1"
)

// How many seconds a pod stays on a node that is not ready or cannot be reached, unless the pod says otherwise.
const defaultTolerationSeconds = 300

// Pod sets the defaults of a pod: those of its spec, and those that pods get but templates of workloads do not: the two
// tolerations for lost nodes, and the service account. The priority is not set here, since it depends on the priority
// class.
func Pod(pod *corev1.Pod) {
	PodSpec(&pod.Spec)
	spec := &pod.Spec
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = "default"
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = new(corev1.DefaultEnableServiceLinks)
	}
	tolerate(spec, corev1.TaintNodeNotReady)
	tolerate(spec, corev1.TaintNodeUnreachable)
}

// tolerate lets the pod stay for a limited time on a node with the taint, unless the pod says how long itself.
func tolerate(spec *corev1.PodSpec, taint string) {
	for _, t := range spec.Tolerations {
		if (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
		Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: new(int64(defaultTolerationSeconds)),
	})
}

// PodSpec sets the defaults of the spec of a pod or of a workload's template.
func PodSpec(spec *corev1.PodSpec) {
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirst
	}
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	if spec.SchedulerName == "" {
		spec.SchedulerName = corev1.DefaultSchedulerName
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	// A template may name the account in either of two fields, and Kubernetes keeps them equal.
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	for i := range spec.Volumes {
		volume(&spec.Volumes[i].VolumeSource)
	}
	for i := range spec.InitContainers {
		container(&spec.InitContainers[i], spec.HostNetwork)
	}
	for i := range spec.Containers {
		container(&spec.Containers[i], spec.HostNetwork)
	}
	for i := range spec.EphemeralContainers {
		c := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		container(&c, spec.HostNetwork)
		spec.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
}

// volume sets the defaults of a volume. A volume without a source becomes an emptyDir.
func volume(v *corev1.VolumeSource) {
	mode := func(m **int32) {
		if *m == nil {
			*m = new(int32(0o644))
		}
	}
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if h := v.HostPath; h != nil && h.Type == nil {
		h.Type = new(corev1.HostPathUnset)
	}
	if c := v.ConfigMap; c != nil {
		mode(&c.DefaultMode)
	}
	if s := v.Secret; s != nil {
		mode(&s.DefaultMode)
	}
	if d := v.DownwardAPI; d != nil {
		mode(&d.DefaultMode)
		downward(d.Items)
	}
	if p := v.Projected; p != nil {
		mode(&p.DefaultMode)
		for i := range p.Sources {
			source := &p.Sources[i]
			if source.DownwardAPI != nil {
				downward(source.DownwardAPI.Items)
			}
			if t := source.ServiceAccountToken; t != nil && t.ExpirationSeconds == nil {
				t.ExpirationSeconds = new(int64(60 * 60))
			}
		}
	}
}

func downward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		fieldRef(items[i].FieldRef)
	}
}

func fieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil && ref.APIVersion == "" {
		ref.APIVersion = "v1"
	}
}
