package bed

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// measured is a value of Go's benchmarks with its unit, such as "0.91 of-nginx".
var measured = regexp.MustCompile(`([0-9.e+-]+) ([A-Za-z0-9/-]+)`)

// Benchmark runs a benchmark of a package so often and returns its figures, by the name of its part ("" if it has none) and their
// units.
func Benchmark(pkg, name string, times int) (map[string]map[string]float64, error) {
	out, err := exec.Command("go", "test", "-run=^$", "-bench=^"+name+"$", fmt.Sprintf("-benchtime=%dx", times), pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, out)
	}
	all := map[string]map[string]float64{}
	line := regexp.MustCompile(`(?m)^` + name + `(?:/(\S+?))?(?:-\d+)?\s+\d+\s(.*)$`)
	for _, l := range line.FindAllSubmatch(out, -1) {
		figures := map[string]float64{}
		for _, f := range measured.FindAllSubmatch(l[2], -1) {
			if figures[string(f[2])], err = strconv.ParseFloat(string(f[1]), 64); err != nil {
				return nil, err
			}
		}
		all[string(l[1])] = figures
	}
	return all, nil
}
