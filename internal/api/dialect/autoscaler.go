package dialect

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
)

// The words of the first seed system's metrics, with ours. Cpu comes first, as there.
var utilizations = []struct{ word, resource string }{
	{"CPUUtilizationPercentage", "cpu"}, {"MemUtilizationPercentage", "memory"},
}

// autoscaler returns the dialects of one version of HorizontalPodAutoscalers.
//
// The first seed system's has a map of metrics, or a scaleInterval: at most one pod is added or removed in an interval, at
// once, and cpu comes before memory; a percentage is one of a core, or of the memory that a pod may use at most. The second's
// is v2beta2: where pods request nothing, the same percentage counts, and without policies of its own it grows by one pod each
// 15 s, or to twice as many in a minute.
func autoscaler(kind *api.Kind) func(r *rewriter, doc map[string]any) {
	return func(r *rewriter, doc map[string]any) {
		spec := object(doc["spec"])
		if spec == nil {
			return
		}
		ref := object(spec["scaleTargetRef"])
		_, mapped := spec["metrics"].(map[string]any)
		first := mapped || spec["scaleInterval"] != nil || ref["metadata"] != nil
		second := kind == api.HorizontalPodAutoscalersV2beta2
		if first {
			r.nameOfTarget(doc, ref)
		}
		if first || second {
			r.versionOfTarget(ref)
		}
		switch {
		case first:
			if mapped {
				r.usual(doc, spec)
			}
			r.steps(doc, spec, kind)
			r.percentages(doc, spec, kind)
		case second:
			r.annotate(doc, "apiVersion", api.UtilizationBasisAnnotation, api.BasisRequestsOrCapacity,
				"a utilization is one of what the pods request, and where they request nothing of a core, or of their limit or node")
			r.growth(spec)
		}
	}
}

// nameOfTarget moves the target's name out of its metadata.
func (r *rewriter) nameOfTarget(doc, ref map[string]any) {
	const path = "spec.scaleTargetRef.metadata"
	meta, isMap := ref["metadata"].(map[string]any)
	if !isMap {
		return
	}
	home, _ := object(doc["metadata"])["namespace"].(string)
	if ns, ok := meta["namespace"].(string); ok && ns != home && (home != "" || ns != "default") {
		if home == "" {
			home = "that of the request"
		}
		r.fail(path+".namespace", "it is %s, and the autoscaler's namespace is %s: an autoscaler scales what is in its own", ns, home)
		return
	}
	name, ok := meta["name"].(string)
	if !ok {
		return
	}
	if there, _ := ref["name"].(string); there != "" && there != name && !r.patched {
		r.fail(path+".name", "it is %q here and %q in spec.scaleTargetRef", name, there)
		return
	}
	ref["name"] = name
	delete(ref, "metadata")
	r.note(path, "its name was read as spec.scaleTargetRef.name")
}

// versionOfTarget gives the target the version of its kind; the seed systems write v1, or none, for kinds of any group.
func (r *rewriter) versionOfTarget(ref map[string]any) {
	word, _ := ref["kind"].(string)
	given, _ := ref["apiVersion"].(string)
	if plain := plainVersion(given); plain != "" && plain != "v1" {
		return
	}
	for _, k := range api.Kinds {
		if k.Kind == word && k.Subresource(api.ScaleSubresource) != nil && k.APIVersion() != given {
			ref["apiVersion"] = k.APIVersion()
			r.note("spec.scaleTargetRef.apiVersion", "%q was read as %s", given, schema.GroupVersion{Group: k.Group, Version: k.Version})
		}
	}
}

// usual are what the first system takes where a manifest of its says nothing.
func (r *rewriter) usual(doc, spec map[string]any) {
	set := func(field string, value int64) {
		if spec[field] == nil {
			spec[field] = value
			r.note("spec."+field, "it is %d where nothing is said", value)
		}
	}
	set("maxReplicas", 1)
	_, inAnnotation := object(object(doc["metadata"])["annotations"])[api.BehaviorV1Annotation]
	if spec["behavior"] == nil && !inAnnotation { // else it is an autoscaler that has its own, of which a part is changed
		set("scaleInterval", 15)
	}
}

// steps turns the interval into a behavior of one pod each time, both ways and without waiting.
func (r *rewriter) steps(doc, spec map[string]any, kind *api.Kind) {
	given, ok := spec["scaleInterval"]
	if !ok {
		return
	}
	r.number(spec, "spec", "scaleInterval")
	text, _ := scalar(spec["scaleInterval"])
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds < 1 {
		r.fail("spec.scaleInterval", "expected a whole number of seconds, at least 1, got %v", given)
		return
	}
	delete(spec, "scaleInterval")
	one := func() map[string]any {
		return map[string]any{"stabilizationWindowSeconds": int64(0), "selectPolicy": "Max",
			"policies": []any{map[string]any{"type": "Pods", "value": int64(1), "periodSeconds": seconds}}}
	}
	r.behavior(doc, spec, kind, map[string]any{"scaleUp": one(), "scaleDown": one()})
	r.annotate(doc, "spec.scaleInterval", api.SyncPeriodAnnotation, (time.Duration(seconds) * time.Second).String(),
		"the metrics are looked at as often, and at most one pod is added or removed in that time")
}

func (r *rewriter) behavior(doc, spec map[string]any, kind *api.Kind, behavior map[string]any) {
	if kind != api.HorizontalPodAutoscalersV1 {
		spec["behavior"] = behavior
		return
	}
	r.inAnnotation(doc, api.BehaviorV1Annotation, behavior)
}

// growth gives an autoscaler the second system's policies for growing, should it have none. Those for shrinking are upstream's.
func (r *rewriter) growth(spec map[string]any) {
	behavior := object(spec["behavior"])
	up := object(behavior["scaleUp"])
	if _, has := up["policies"]; has || r.patched {
		return
	}
	if behavior == nil {
		behavior = map[string]any{}
		spec["behavior"] = behavior
	}
	if up == nil {
		up = map[string]any{}
		behavior["scaleUp"] = up
	}
	policy := func(kind string, value, seconds int64) any {
		return map[string]any{"type": kind, "value": value, "periodSeconds": seconds}
	}
	up["policies"] = []any{policy("Pods", 1, 15), policy("Percent", 100, 60)}
	r.note("spec.behavior.scaleUp.policies", "at most one pod in 15 s, or twice as many in 60 s, as v2beta2 has it here without policies")
}

// percentages turns the map of metrics into a list, or into what the version has instead.
func (r *rewriter) percentages(doc, spec map[string]any, kind *api.Kind) {
	r.annotate(doc, "spec", api.UtilizationBasisAnnotation, api.BasisCapacity,
		"a percentage is one of a core for cpu, and for memory one of the pod's limit or its node's memory")
	given, isMap := spec["metrics"].(map[string]any)
	if !isMap {
		return
	}
	for key := range given {
		if key != utilizations[0].word && key != utilizations[1].word {
			r.fail("spec.metrics."+key, "it is not known; there are %s and %s", utilizations[0].word, utilizations[1].word)
			return
		}
	}
	var list, others []any
	for _, u := range utilizations {
		value, ok := given[u.word]
		if !ok {
			continue
		}
		text, isNumber := scalar(value)
		if s, isString := value.(string); isString {
			text, isNumber = s, true
		}
		percent, err := strconv.ParseFloat(text, 64)
		if !isNumber || err != nil || !(percent > 0) || percent > math.MaxInt32 {
			r.fail("spec.metrics."+u.word, "expected a number of percent above 0, got %v", value)
			return
		}
		m, v1 := utilization(u.resource, percent)
		list = append(list, m)
		switch {
		case kind == api.HorizontalPodAutoscalersV1 && u.resource == "cpu" && percent == math.Trunc(percent):
			spec["targetCPUUtilizationPercentage"] = int64(percent)
		default:
			others = append(others, v1)
		}
		r.note("spec.metrics."+u.word, "read as a metric of the resource %s: %s", u.resource, describeTarget(m))
	}
	if len(list) > 1 {
		r.annotate(doc, "spec.metrics", api.LeadingMetricAnnotation, "cpu", "memory counts only while nothing is known of cpu")
	}
	delete(spec, "metrics")
	switch {
	case kind != api.HorizontalPodAutoscalersV1:
		spec["metrics"] = list
	case len(others) > 0:
		r.inAnnotation(doc, api.MetricsV1Annotation, others)
	}
}

// utilization is a metric of a resource in autoscaling/v2, and in the form of v1's annotation. Kubernetes has whole percents
// only; a part of a percent of a core is an amount.
func utilization(resource string, percent float64) (v2, v1 map[string]any) {
	target, old := map[string]any{}, map[string]any{"name": resource}
	if percent != math.Trunc(percent) && resource == "cpu" {
		amount := fmt.Sprintf("%dm", max(1, int64(math.Round(percent*10))))
		target["type"], target["averageValue"] = "AverageValue", amount
		old["targetAverageValue"] = amount
	} else {
		whole := int64(math.Ceil(percent))
		target["type"], target["averageUtilization"] = "Utilization", whole
		old["targetAverageUtilization"] = whole
	}
	return map[string]any{"type": "Resource", "resource": map[string]any{"name": resource, "target": target}},
		map[string]any{"type": "Resource", "resource": old}
}

func describeTarget(metric map[string]any) string {
	target := object(object(metric["resource"])["target"])
	if amount, ok := target["averageValue"]; ok {
		return fmt.Sprintf("%v on average", amount)
	}
	return fmt.Sprintf("%v %% on average", target["averageUtilization"])
}

// annotate sets an annotation, unless it is there. why says what it means.
func (r *rewriter) annotate(doc map[string]any, path, name, value, why string) {
	annotations := r.annotations(doc)
	if annotations == nil || annotations[name] != nil && !r.patched || annotations[name] == value {
		return
	}
	annotations[name] = value
	r.note(path, "%s=%s was set: %s", name, value, why)
}

// inAnnotation puts a value into an annotation, as JSON.
func (r *rewriter) inAnnotation(doc map[string]any, name string, value any) {
	data, err := json.Marshal(value)
	if annotations := r.annotations(doc); annotations != nil && err == nil {
		annotations[name] = string(data)
		r.note("metadata.annotations["+name+"]", "set from the manifest, as autoscaling/v1 has no field for it")
	}
}

// annotations returns a document's annotations, made if there are none; nil if something else is in their place.
func (r *rewriter) annotations(doc map[string]any) map[string]any {
	for _, key := range []string{"metadata", "annotations"} {
		below, isMap := doc[key].(map[string]any)
		switch {
		case doc[key] != nil && !isMap:
			return nil
		case below == nil:
			below = map[string]any{}
			doc[key] = below
		}
		doc = below
	}
	return doc
}
