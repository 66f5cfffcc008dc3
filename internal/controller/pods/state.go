package pods

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Finished reports whether a pod will not run again.
func Finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Active reports whether a pod runs or will run: it is neither finished nor being deleted.
func Active(p *corev1.Pod) bool { return !Finished(p) && p.DeletionTimestamp == nil }

// Terminating reports whether a pod is being deleted and has not ended yet.
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

// Ready reports whether a pod may be sent traffic.
func Ready(p *corev1.Pod) bool {
	c := Condition(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Available reports whether a pod has been ready for minReady seconds. If it is ready, but not for that long, wait is the
// remaining time. since says since when a pod is ready by the clock of now; nil: as the pod has it, by its node's clock.
func Available(p *corev1.Pod, minReady int32, since func(*corev1.Pod) time.Time, now time.Time) (ok bool, wait time.Duration) {
	c := Condition(p, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false, 0
	}
	if minReady == 0 {
		return true, 0
	}
	from := c.LastTransitionTime.Time
	if since != nil {
		from = since(p)
	}
	wait = from.Add(time.Duration(minReady) * time.Second).Sub(now)
	return wait <= 0, max(wait, 0)
}

// TemplateHash is a short name for a template: equal templates have equal hashes. collisions, which may be nil,
// distinguishes two templates whose hashes collide.
func TemplateHash(t *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	raw, err := json.Marshal(t)
	if err != nil { // cannot happen: the template was decoded from JSON
		raw = []byte(err.Error())
	}
	h.Write(raw) //nolint:errcheck // a hash never fails
	if collisions != nil {
		h.Write([]byte(strconv.Itoa(int(*collisions)))) //nolint:errcheck // as above
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}
