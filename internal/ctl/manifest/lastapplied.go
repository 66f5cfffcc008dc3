package manifest

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// annotated returns doc with the canonical document, as text, in the same annotation that kubectl uses for what was
// last applied. The next apply compares with it, in Kubernetes' form, whatever form was sent.
func annotated(doc, canonical map[string]any) ([]byte, error) {
	base := runtime.DeepCopyJSON(canonical)
	delete(annotations(base), corev1.LastAppliedConfigAnnotation)
	text, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}
	out := runtime.DeepCopyJSON(doc)
	annotations(out)[corev1.LastAppliedConfigAnnotation] = string(text) + "\n"
	return json.Marshal(out)
}

// annotations returns a document's annotations, and creates them if there are none.
func annotations(doc map[string]any) map[string]any {
	meta, ok := doc["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		doc["metadata"] = meta
	}
	notes, ok := meta["annotations"].(map[string]any)
	if !ok {
		notes = map[string]any{}
		meta["annotations"] = notes
	}
	return notes
}
