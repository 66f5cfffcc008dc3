package dialect

// NodeIP is the annotation that keeps the address that a seed system's manifest gives a node. The node's real address
// is reported by its kubelet in status.addresses.
const NodeIP = "minik8s.io/node-ip"

// node moves the address, which one seed system puts at the top of the document and the other below spec.
func node(r *rewriter, doc map[string]any) {
	r.address(doc, doc, "ip", "ip")
	if spec := object(doc["spec"]); spec != nil {
		r.address(doc, spec, "address", "spec.address")
	}
}

// address moves doc's address from m[key] to the annotation.
func (r *rewriter) address(doc, m map[string]any, key, path string) {
	ip, ok := m[key].(string)
	if !ok {
		return
	}
	meta, isMap := doc["metadata"].(map[string]any)
	if doc["metadata"] != nil && !isMap {
		return
	}
	if meta == nil {
		meta = map[string]any{}
		doc["metadata"] = meta
	}
	annotations, isMap := meta["annotations"].(map[string]any)
	if meta["annotations"] != nil && !isMap {
		return
	}
	if annotations == nil {
		annotations = map[string]any{}
		meta["annotations"] = annotations
	}
	if before, _ := annotations[NodeIP].(string); before != "" && before != ip && !r.patched {
		r.fail(path, "the node's address is %s here and %s elsewhere", ip, before)
		return
	}
	annotations[NodeIP] = ip
	delete(m, key)
	r.note(path, "kept as the annotation %s; a node reports its address itself", NodeIP)
}
