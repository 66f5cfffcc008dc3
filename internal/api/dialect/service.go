package dialect

// service makes numbers of ports numbers, and values of the selector strings: the seed systems take either.
func service(r *rewriter, doc map[string]any) {
	spec := object(doc["spec"])
	for i, p := range list(spec["ports"]) {
		if port := object(p); port != nil {
			path := index("spec.ports", i)
			r.number(port, path, "port")
			r.number(port, path, "targetPort")
			r.number(port, path, "nodePort")
		}
	}
	selector := object(spec["selector"])
	for key, value := range selector {
		if text, ok := scalar(value); ok {
			selector[key] = text
			r.note("spec.selector."+key, "%s read as the string %q", text, text)
		}
	}
}
