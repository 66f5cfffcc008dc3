package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// measured is a value of Go's benchmarks with its unit, such as "0.91 of-nginx".
var measured = regexp.MustCompile(`([0-9.e+-]+) ([A-Za-z0-9/-]+)`)

// benchmark runs a benchmark of a package so often and returns its figures, by the name of its part ("" if it has none) and their
// units.
func benchmark(pkg, name string, times int) (map[string]map[string]float64, error) {
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

// gatewayFigures measures the gateway and nginx, by turns, before the same backend.
func gatewayFigures(r *report) error {
	if _, err := exec.LookPath("nginx"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: gateway is left out: there is no nginx, see deploy/benchtools.sh")
		return nil
	}
	all, err := benchmark("./internal/gateway", "BenchmarkAgainstNginx", 1)
	if err != nil {
		return err
	}
	for _, n := range []string{"32", "1"} {
		f := all["connections="+n]
		if len(f) == 0 {
			return fmt.Errorf("no figures of %s connections: %v", n, all)
		}
		r.add("gateway: requests/s of nginx, "+n+" connections", f["of-nginx"], "x", ">= 0.6", fmt.Sprintf("%.0f/s and %.0f/s", f["req/s"], f["nginx-req/s"]))
		r.add("  p99, of nginx's", f["p99-ms"]/f["nginx-p99-ms"], "x", "<= 1.5", fmt.Sprintf("%.2f and %.2f ms", f["p99-ms"], f["nginx-p99-ms"]))
	}
	return nil
}
