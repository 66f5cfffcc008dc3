package objectmetrics

import (
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/exposition"
)

// Write writes the page; all returns the objects of a kind, which are not changed. The error is that of w.
func Write(w io.Writer, all func(*api.Kind) []api.Object) error {
	t := exposition.To(w)
	for _, k := range kinds {
		if kind := api.ByWord(k.resource()); kind != nil { // a row may be here before its kind is
			k.write(t, all(kind))
		}
	}
	return t.Flush()
}

// Kinds are those of which there is something to say.
func Kinds() []*api.Kind {
	var out []*api.Kind
	for _, k := range kinds {
		if kind := api.ByWord(k.resource()); kind != nil {
			out = append(out, kind)
		}
	}
	return out
}

var kinds = []interface {
	resource() string
	write(*exposition.Text, []api.Object)
}{nodes, namespaces, pods, deployments, replicaSets, replicationControllers, daemonSets, jobs, services, endpointSlices,
	ingresses, configMaps, autoscalers}

// of is what is said of a kind.
type of[T api.Object] struct {
	plural   string // with the group
	labels   func(T) string
	families []family[T]
}

// family is one metric. A family without samples leaves no trace.
type family[T api.Object] struct {
	name, kind, help string
	each             func(p page, o T)
}

func gauge[T api.Object](name, help string, each func(p page, o T)) family[T] {
	return family[T]{name, exposition.Gauge, help, each}
}

// value is a gauge of a single sample.
func value[T api.Object](name, help string, of func(T) float64) family[T] {
	return gauge(name, help, func(p page, o T) { p.put(of(o)) })
}

// moment is a gauge of a time in seconds since 1970, for objects that have it.
func moment[T api.Object](name, help string, of func(T) *metav1.Time) family[T] {
	return gauge(name, help, func(p page, o T) { p.at(of(o)) })
}

func (k of[T]) resource() string { return k.plural }

func (k of[T]) write(t *exposition.Text, all []api.Object) {
	labels := make([]string, len(all))
	for i, o := range all {
		labels[i] = k.labels(o.(T))
	}
	for _, f := range k.families {
		t.Maybe(f.name, f.kind, f.help)
		for i, o := range all {
			f.each(page{t, labels[i]}, o.(T))
		}
	}
}

// page takes the samples of one object.
type page struct {
	text   *exposition.Text
	labels string
}

// put adds a sample; more are further labels' names and values, in turns.
func (p page) put(v float64, more ...string) { p.text.Sample(p.labels, v, time.Time{}, more...) }

// at adds a time in seconds, if there is one.
func (p page) at(when *metav1.Time, more ...string) {
	if when != nil && !when.IsZero() {
		p.put(float64(when.Unix()), more...)
	}
}

// oneOf adds a sample for each of the values that a label may have: 1 for the one that it has, else 0.
func (p page) oneOf(label, is string, of []string) {
	for _, v := range of {
		p.put(flag(v == is), label, v)
	}
}

// condition adds a sample for each status that a condition may have.
func (p page) condition(kind string, status corev1.ConditionStatus, more ...string) {
	is := lower(status)
	for _, s := range statuses {
		labels := append([]string{"condition", kind, "status", s}, more...)
		p.put(flag(s == is), labels...)
	}
}

// statuses are those of conditions, as labels.
var statuses = []string{"true", "false", "unknown"}

func lower(s corev1.ConditionStatus) string {
	switch s {
	case corev1.ConditionTrue:
		return "true"
	case corev1.ConditionFalse:
		return "false"
	}
	return "unknown"
}

// amounts adds a sample for each resource, with more labels before it.
func (p page) amounts(list corev1.ResourceList, more ...string) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		labels := append(more, "resource", underscores.Replace(string(name)), "unit", unit(name))
		p.put(amount(name, &q), labels...)
	}
}

var underscores = strings.NewReplacer("-", "_", ".", "_", "/", "_")

func amount(name corev1.ResourceName, q *resource.Quantity) float64 {
	if name == corev1.ResourceCPU {
		return float64(q.MilliValue()) / 1000
	}
	return float64(q.Value())
}

func unit(name corev1.ResourceName) string {
	switch {
	case name == corev1.ResourceCPU:
		return "core"
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, name == corev1.ResourceStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return "byte"
	}
	return "integer"
}

// owners adds the objects that own this one; without any there is one sample with empty labels.
func (p page) owners(o api.Object) {
	refs := o.GetOwnerReferences()
	if len(refs) == 0 {
		p.put(1, "owner_kind", "", "owner_name", "", "owner_is_controller", "")
	}
	for i := range refs {
		p.put(1, "owner_kind", refs[i].Kind, "owner_name", refs[i].Name, "owner_is_controller", word(refs[i].Controller != nil && *refs[i].Controller))
	}
}

func word(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func number(n *int32) float64 {
	if n == nil {
		return 0
	}
	return float64(*n)
}

// named is the labels of most kinds: the namespace and, under the kind's own label, the name.
func named[T api.Object](label string) func(T) string {
	return func(o T) string { return exposition.Labels("namespace", o.GetNamespace(), label, o.GetName()) }
}

func created[T api.Object](prefix string) family[T] {
	return moment(prefix+"_created", "Unix creation timestamp", func(o T) *metav1.Time { t := o.GetCreationTimestamp(); return &t })
}

func deleted[T api.Object](prefix string) family[T] {
	return moment(prefix+"_deletion_timestamp", "Unix deletion timestamp", func(o T) *metav1.Time { return o.GetDeletionTimestamp() })
}

func generation[T api.Object](prefix string) family[T] {
	return value(prefix+"_metadata_generation", "Sequence number representing a specific generation of the desired state.",
		func(o T) float64 { return float64(o.GetGeneration()) })
}
