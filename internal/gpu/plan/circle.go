package plan

// Circle returns the way from a job through those that it waits for back to itself, both ends named; nil if there is none.
func Circle(job string, waitsFor func(job string) []string) []string {
	seen := map[string]bool{}
	var from func(at string) []string
	from = func(at string) []string {
		for _, next := range waitsFor(at) {
			if next == job {
				return []string{at, job}
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if rest := from(next); rest != nil {
				return append([]string{at}, rest...)
			}
		}
		return nil
	}
	return from(job)
}
