package validation

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mayChange is PodUpdate's message when another field was changed.
const mayChange = "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, " +
	"`spec.activeDeadlineSeconds`, `spec.schedulingGates` (only removals), `spec.tolerations` (only additions to existing tolerations), " +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// PodUpdate checks that pod differs from old only in the fields that may change while containers run.
func PodUpdate(pod, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, deadlineUpdate(pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))...)
	errs = append(errs, tolerationsUpdate(pod.Spec.Tolerations, old.Spec.Tolerations, path.Child("tolerations"))...)

	// After everything that may change is reset, the rest must be as before.
	rest := pod.Spec.DeepCopy()
	rest.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	rest.Tolerations = old.Spec.Tolerations
	if gatesRemoved(rest.SchedulingGates, old.Spec.SchedulingGates) {
		rest.SchedulingGates = old.Spec.SchedulingGates
	}
	if was, is := old.Spec.TerminationGracePeriodSeconds, rest.TerminationGracePeriodSeconds; was != nil && *was < 0 && is != nil && *is == 1 {
		rest.TerminationGracePeriodSeconds = was
	}
	sameImages(rest.Containers, old.Spec.Containers)
	sameImages(rest.InitContainers, old.Spec.InitContainers)
	if apiequality.Semantic.DeepEqual(*rest, old.Spec) {
		return errs
	}
	return append(errs, field.Forbidden(path, mayChange+"; changed: "+strings.Join(changed(rest, &old.Spec), ", ")))
}

// gatesRemoved reports whether a pod has no new gate: gates may only be removed.
func gatesRemoved(now, was []corev1.PodSchedulingGate) bool {
	return !slices.ContainsFunc(now, func(g corev1.PodSchedulingGate) bool { return !slices.Contains(was, g) })
}

func sameImages(list, old []corev1.Container) {
	for i := range list {
		if i < len(old) {
			list[i].Image = old[i].Image
		}
	}
}

func deadlineUpdate(now, was *int64, path *field.Path) field.ErrorList {
	switch {
	case was == nil:
		return nil
	case now == nil:
		return field.ErrorList{field.Invalid(path, "", "must not update from a positive integer to nil value")}
	case *now > *was:
		return field.ErrorList{field.Invalid(path, *now, "must be less than or equal to previous value")}
	}
	return nil
}

// tolerationsUpdate checks that every old toleration is still there; only its seconds may differ.
func tolerationsUpdate(now, was []corev1.Toleration, path *field.Path) field.ErrorList {
	for _, old := range was {
		kept := slices.ContainsFunc(now, func(t corev1.Toleration) bool {
			t.TolerationSeconds = old.TolerationSeconds
			return reflect.DeepEqual(t, old)
		})
		if !kept {
			return field.ErrorList{field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

// maxChanged is the maximum number of changed fields in a message.
const maxChanged = 8

// changed returns the fields in which two values of one type differ: "spec.containers[0].args".
func changed(now, was any) []string {
	var paths []string
	compare("spec", tree(now), tree(was), &paths)
	slices.Sort(paths)
	if len(paths) > maxChanged {
		paths = append(paths[:maxChanged], "...")
	}
	return paths
}

func tree(v any) (out any) {
	if raw, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(raw, &out) //nolint:errcheck // it was marshalled just now
	}
	return out
}

func compare(path string, a, b any, paths *[]string) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			keys := sets.New(slices.Collect(maps.Keys(x))...).Insert(slices.Collect(maps.Keys(y))...)
			for key := range keys {
				compare(path+"."+key, x[key], y[key], paths)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				compare(path+"["+strconv.Itoa(i)+"]", x[i], y[i], paths)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		*paths = append(*paths, path)
	}
}

// PodStatusUpdate checks a pod's status as reported by a kubelet or a controller.
func PodStatusUpdate(pod, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("status")
	var errs field.ErrorList
	status := &pod.Status
	if status.Phase != "" {
		errs = append(errs, oneOf(path.Child("phase"), status.Phase, corev1.PodPending, corev1.PodRunning,
			corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown)...)
	}
	if q := old.Status.QOSClass; q != "" && status.QOSClass != "" && q != status.QOSClass {
		errs = append(errs, field.Invalid(path.Child("qosClass"), status.QOSClass, "field is immutable"))
	}
	if status.NominatedNodeName != "" {
		errs = append(errs, say(path.Child("nominatedNodeName"), status.NominatedNodeName, validation.IsDNS1123Subdomain(status.NominatedNodeName))...)
	}
	for i, ip := range status.PodIPs {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Child("podIPs").Index(i).Child("ip"), ip.IP, true, nil)...)
	}
	if status.PodIP != "" && len(status.PodIPs) == 0 {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Child("podIP"), status.PodIP, true, nil)...)
	}
	if status.PodIP != "" && len(status.PodIPs) > 0 && status.PodIPs[0].IP != status.PodIP {
		errs = append(errs, field.Invalid(path.Child("podIPs").Index(0).Child("ip"), status.PodIPs[0].IP, "must be the podIP, "+status.PodIP))
	}
	seen := sets.New[corev1.PodConditionType]()
	for i, c := range status.Conditions {
		at := path.Child("conditions").Index(i)
		errs = append(errs, required(at.Child("type"), string(c.Type))...)
		errs = append(errs, oneOf(at.Child("status"), c.Status, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)...)
		if seen.Has(c.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen.Insert(c.Type)
	}
	for i := range status.ContainerStatuses {
		c, at := &status.ContainerStatuses[i], path.Child("containerStatuses").Index(i)
		errs = append(errs, nonNegative(at.Child("restartCount"), c.RestartCount)...)
		errs = append(errs, oneState(&c.State, at.Child("state"))...)
	}
	return errs
}

func oneState(s *corev1.ContainerState, path *field.Path) field.ErrorList {
	set := 0
	for _, is := range []bool{s.Waiting != nil, s.Running != nil, s.Terminated != nil} {
		if is {
			set++
		}
	}
	if set > 1 {
		return field.ErrorList{field.Forbidden(path, "may not have more than one of waiting, running and terminated")}
	}
	return nil
}
