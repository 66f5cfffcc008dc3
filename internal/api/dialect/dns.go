package dialect

// dns makes the second seed system's words canonical, and numbers of ports numbers.
func dns(r *rewriter, doc map[string]any) {
	spec := object(doc["spec"])
	if spec == nil {
		return
	}
	r.move(spec, "spec", "hostname", "host")
	r.move(spec, "spec", "mappings", "paths")
	for i, p := range list(spec["paths"]) {
		if service := object(object(p)["service"]); service != nil {
			r.number(service, index("spec.paths", i)+".service", "port")
		}
	}
	status := object(doc["status"])
	r.drop(status, "status", "service-uid", "the address belongs to the object itself")
	r.drop(status, "status", "pod-uid", "every node is a gateway, there is no pod for it")
}
