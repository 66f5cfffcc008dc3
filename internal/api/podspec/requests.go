package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are quantities of resources as numbers: cpu in thousandths of a core, all others in units.
type Amounts map[corev1.ResourceName]int64

// MaxAmount replaces every larger amount. The sums within one pod or one node then stay far from an overflow.
const MaxAmount = 1 << 50

// Amount returns a quantity as a number.
func Amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if q.CmpInt64(MaxAmount) >= 0 { // before it is multiplied
		return MaxAmount
	}
	if name == corev1.ResourceCPU {
		return min(q.MilliValue(), MaxAmount)
	}
	return q.Value()
}

// Quantity is one of the amounts as a quantity, for people.
func (a Amounts) Quantity(name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(a[name], resource.DecimalSI)
	}
	return *resource.NewQuantity(a[name], resource.BinarySI)
}

// Requests returns what a pod requests of its node: the larger of two amounts, plus its overhead. One is the sum of its
// containers and sidecars. The other is the largest init container plus the sidecars started before it. Requests of the
// pod as a whole replace those of its containers. It is Kubernetes' rule: PodRequests in
// k8s.io/component-helpers/resource/helpers.go, without in-place resizing. Like PodRequests it reads only requests: for
// a container with only a limit, the defaults have copied it.
func Requests(spec *corev1.PodSpec) Amounts {
	sum := aggregate(spec, requestsOf)
	if spec.Resources != nil {
		for name, q := range spec.Resources.Requests {
			sum[name] = Amount(name, q)
		}
	}
	sum.add(spec.Overhead)
	return sum
}

// Limit returns how much of a resource a pod's containers may use together. limited is false if one of them has no
// limit, since that one may use everything. A limit of the pod as a whole replaces those of its containers. Otherwise
// limits add up as requests do (PodLimits in k8s.io/component-helpers/resource).
func Limit(spec *corev1.PodSpec, name corev1.ResourceName) (limit int64, limited bool) {
	if spec.Resources != nil {
		if q, ok := spec.Resources.Limits[name]; ok {
			return Amount(name, q), true
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if q, ok := list[i].Resources.Limits[name]; !ok || q.IsZero() {
				return 0, false
			}
		}
	}
	limit = aggregate(spec, limitsOf)[name]
	if q, ok := spec.Overhead[name]; ok {
		limit += Amount(name, q)
	}
	return limit, true
}

func requestsOf(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }
func limitsOf(c *corev1.Container) corev1.ResourceList   { return c.Resources.Limits }

// aggregate adds up one list of each container. Containers that run at the same time are added; of those that run one
// after the other the largest counts.
func aggregate(spec *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) Amounts {
	sum := Amounts{}
	for i := range spec.Containers {
		sum.add(of(&spec.Containers[i]))
	}
	if len(spec.InitContainers) == 0 {
		return sum
	}
	widest, sidecars := Amounts{}, Amounts{}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if IsSidecar(c) {
			sidecars.add(of(c))
			sum.add(of(c))
			continue
		}
		for name, q := range of(c) {
			widest[name] = max(widest[name], Amount(name, q)+sidecars[name])
		}
	}
	for name, n := range widest {
		sum[name] = max(sum[name], n)
	}
	return sum
}

func (a Amounts) add(list corev1.ResourceList) {
	for name, q := range list {
		a[name] += Amount(name, q)
	}
}
