package strategy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/podspec"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
	"minik8s/internal/registry/authorization"
	"minik8s/internal/registry/subresource"
)

func podStrategy(mountTokens bool, ports nodePorts) *registry.Strategy {
	return &registry.Strategy{
		Default: onOne(defaults.Pod),
		PrepareCreate: onOne(func(pod *corev1.Pod) {
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podspec.QOSClass(&pod.Spec)}
			if len(pod.Spec.SchedulingGates) > 0 { // the scheduler skips such pods, so the condition is set here
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
					Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates"}}
			}
		}),
		PrepareUpdate: onStep(func(pod, old *corev1.Pod) {
			if pod.Spec.NodeName == "" { // a handwritten manifest does not name the scheduled node
				pod.Spec.NodeName = old.Spec.NodeName
			}
			keepPriority(&pod.Spec, &old.Spec)
		}),
		Validate:       checkOne(validatePod),
		ValidateCreate: checkOne(validation.PodCreate),
		ValidateUpdate: checkStep(validation.PodUpdate),
		ValidateStatus: checkStep(validation.PodStatusUpdate),
		Warnings: func(obj api.Object, _ registry.Lister) []string {
			_, warnings := validation.NotServed(&obj.(*corev1.Pod).Spec, field.NewPath("spec"))
			return warnings
		},
		CopyStatus: onStep(func(dst, src *corev1.Pod) {
			class := dst.Status.QOSClass
			dst.Status = src.Status
			if dst.Status.QOSClass == "" { // a kubelet may omit it
				dst.Status.QOSClass = class
			}
		}),
		SpecChanged: func(obj, old api.Object) bool {
			return !apiequality.Semantic.DeepEqual(obj.(*corev1.Pod).Spec, old.(*corev1.Pod).Spec)
		},
		Fields: podFields,
		Admit: func(obj api.Object, others registry.Lister) error {
			if errs := ports.checkHostPorts(obj.(*corev1.Pod), others); len(errs) > 0 {
				return registry.Invalid(api.Pods, obj.GetName(), errs)
			}
			return admitPod(obj, others, mountTokens)
		},
		Exclusive: func(obj, old api.Object) []string {
			if old == nil && ports.needsHostPorts(obj.(*corev1.Pod)) {
				return []string{nodePortGroup}
			}
			return nil
		},
		Grace:         podGrace,
		Restrict:      onOwnNode,
		ReturnDeleted: true, // as in Kubernetes
		Subresources: map[string]registry.Subresource{
			"binding":                          subresource.Binding(),
			"eviction":                         subresource.Eviction(),
			api.EphemeralContainersSubresource: {Part: checkStep(takeEphemeralContainers)},
		},
		Dialect: dialect.For(api.Pods),
	}
}

func validatePod(pod *corev1.Pod) field.ErrorList {
	refused, _ := validation.NotServed(&pod.Spec, field.NewPath("spec"))
	return append(validation.Pod(pod), refused...)
}

// admitPod requires the pod's service account to exist, copies the account's imagePullSecrets to a pod that has none,
// resolves the pod's priority, and mounts the account's token. The account "default" is created in every namespace automatically, a moment after
// the namespace.
func admitPod(obj api.Object, others registry.Lister, mountTokens bool) error {
	pod := obj.(*corev1.Pod)
	name := pod.Spec.ServiceAccountName
	account, ok := others.Get(api.ServiceAccounts, pod.Namespace, name).(*corev1.ServiceAccount)
	switch {
	case ok && len(pod.Spec.ImagePullSecrets) == 0:
		pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	case !ok && name != "" && name != "default":
		return fmt.Errorf("error looking up service account %s/%s: serviceaccount %q not found", pod.Namespace, name, name)
	}
	if err := admitPriority(&pod.Spec, others); err != nil {
		return err
	}
	if mountTokens && wantsToken(pod, account) {
		mountToken(&pod.Spec)
	}
	return nil
}

// onOwnNode lets a kubelet change only the pods on its node, and none of their labels: these say which Services lead to a
// pod, and whose it is.
func onOwnNode(u registry.User, obj, old api.Object) string {
	node, ok := authorization.NodeOf(u)
	switch {
	case !ok || old == nil:
		return ""
	case old.(*corev1.Pod).Spec.NodeName != node:
		return authorization.NotHere
	case obj != nil && !maps.Equal(obj.GetLabels(), old.GetLabels()):
		return "a node may not change the labels of a pod"
	}
	return ""
}

var podFields = selectable(map[string]func(*corev1.Pod) string{
	"spec.nodeName":            func(p *corev1.Pod) string { return p.Spec.NodeName },
	"spec.restartPolicy":       func(p *corev1.Pod) string { return string(p.Spec.RestartPolicy) },
	"spec.schedulerName":       func(p *corev1.Pod) string { return p.Spec.SchedulerName },
	"spec.serviceAccountName":  func(p *corev1.Pod) string { return p.Spec.ServiceAccountName },
	"spec.hostNetwork":         func(p *corev1.Pod) string { return strconv.FormatBool(p.Spec.HostNetwork) },
	"status.phase":             func(p *corev1.Pod) string { return string(p.Status.Phase) },
	"status.podIP":             func(p *corev1.Pod) string { return p.Status.PodIP },
	"status.nominatedNodeName": func(p *corev1.Pod) string { return p.Status.NominatedNodeName },
})

// podGrace returns the seconds that a pod has to terminate: those requested, else its spec's. A pod that is on no
// node, or has ended, is deleted at once.
func podGrace(obj api.Object, asked *int64) int64 {
	pod := obj.(*corev1.Pod)
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	switch {
	case asked != nil:
		grace = *asked
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	if grace < 0 {
		return 1
	}
	return grace
}

// takeEphemeralContainers copies the ephemeral containers of given into pod. Everything else in given is ignored.
func takeEphemeralContainers(pod, given *corev1.Pod) field.ErrorList {
	old := pod.DeepCopy()
	pod.Spec.EphemeralContainers = given.Spec.EphemeralContainers
	defaults.Pod(pod)
	if !apiequality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		pod.Generation++
	}
	return append(validatePod(pod), validation.PodEphemeralUpdate(pod, old)...)
}
