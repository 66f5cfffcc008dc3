package dialect

import "maps"

// OwnerLabel is the label that ties a ReplicaSet's pods to it if its manifest has neither a selector nor labels for its
// pods.
const OwnerLabel = "minik8s.io/replicaset"

// template makes the pod template of a workload canonical.
func template(r *rewriter, doc map[string]any) {
	podSpec(r, object(object(object(doc["spec"])["template"])["spec"]), "spec.template.spec")
}

// replicaSet makes the template and the selector canonical. The seed systems leave the selector out, or write it
// without matchLabels.
func replicaSet(r *rewriter, doc map[string]any) {
	template(r, doc)
	spec := object(doc["spec"])
	pods := object(spec["template"])
	if spec == nil || pods == nil {
		return
	}
	given, isMap := spec["selector"].(map[string]any)
	if spec["selector"] != nil && !isMap {
		return
	}
	if r.patched {
		given = withoutOlder(given)
	}
	if plain := plainLabels(given); plain != nil {
		spec["selector"] = map[string]any{"matchLabels": plain}
		r.note("spec.selector", "read as its matchLabels")
		return
	}
	if r.patched && isOwn(doc, given) { // the patch may have taken the label from the template
		r.ownerLabel(doc, spec, pods)
		return
	}
	if len(object(given["matchLabels"])) > 0 || len(list(given["matchExpressions"])) > 0 {
		return
	}
	for key := range given { // an unknown field: the strict decoder reports it
		if key != "matchLabels" && key != "matchExpressions" {
			return
		}
	}
	if labels := plainLabels(object(object(pods["metadata"])["labels"])); labels != nil {
		spec["selector"] = map[string]any{"matchLabels": labels}
		r.note("spec.selector", "missing, the labels of the template were taken")
		return
	}
	r.ownerLabel(doc, spec, pods)
}

// ownerLabel gives template and selector a label with the name of the ReplicaSet.
func (r *rewriter) ownerLabel(doc, spec, pods map[string]any) {
	name, _ := object(doc["metadata"])["name"].(string)
	meta, isMap := pods["metadata"].(map[string]any)
	if name == "" || pods["metadata"] != nil && !isMap {
		return
	}
	if labels, isMap := meta["labels"].(map[string]any); meta["labels"] != nil && (!isMap || len(labels) > 0) {
		return
	}
	if meta == nil {
		meta = map[string]any{}
		pods["metadata"] = meta
	}
	meta["labels"] = map[string]any{OwnerLabel: name}
	spec["selector"] = map[string]any{"matchLabels": map[string]any{OwnerLabel: name}}
	r.note("spec.selector", "missing, and so are labels of the template: its pods get the label %s", OwnerLabel)
}

// isOwn reports whether ownerLabel made the selector.
func isOwn(doc, selector map[string]any) bool {
	name, _ := object(doc["metadata"])["name"].(string)
	labels := object(selector["matchLabels"])
	return len(selector) == 1 && len(labels) == 1 && name != "" && labels[OwnerLabel] == name
}

// withoutOlder returns a selector that a patch wrote without matchLabels, without the matchLabels that the stored
// object had.
func withoutOlder(selector map[string]any) map[string]any {
	newer := maps.Clone(selector)
	delete(newer, "matchLabels")
	if plainLabels(newer) == nil {
		return selector
	}
	return newer
}

// plainLabels returns a copy of a map of labels; nil if it is empty or something else, such as a selector.
func plainLabels(m map[string]any) map[string]any {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]any, len(m))
	for key, value := range m {
		s, ok := value.(string)
		if !ok {
			return nil
		}
		out[key] = s
	}
	return out
}
