package pods

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Finished says that a pod will not run again.
func Finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Active says that a pod runs or will run: it is neither finished nor being deleted.
func Active(p *corev1.Pod) bool { return !Finished(p) && p.DeletionTimestamp == nil }

// Terminating says that a pod is being deleted and has not ended yet.
func Terminating(p *corev1.Pod) bool { return !Finished(p) && p.DeletionTimestamp != nil }

// Condition is a pod's condition; nil if it has none of the type.
func Condition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// Ready says that a pod may be sent traffic.
func Ready(p *corev1.Pod) bool {
	c := Condition(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Available says that a pod has been ready for minReady seconds; if it is ready and has not yet, wait is
// how long it still needs.
func Available(p *corev1.Pod, minReady int32, now time.Time) (ok bool, wait time.Duration) {
	c := Condition(p, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false, 0
	}
	if minReady == 0 {
		return true, 0
	}
	wait = c.LastTransitionTime.Add(time.Duration(minReady) * time.Second).Sub(now)
	return wait <= 0, max(wait, 0)
}

// TemplateHash is a short name for a template: equal templates have equal hashes. collisions, which may
// be nil, tells apart two templates whose hashes met.
func TemplateHash(t *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	raw, err := json.Marshal(t)
	if err != nil { // a template came out of JSON, so it goes into it
		raw = []byte(err.Error())
	}
	h.Write(raw) //nolint:errcheck // a hash never fails
	if collisions != nil {
		h.Write([]byte(strconv.Itoa(int(*collisions)))) //nolint:errcheck // as above
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}
