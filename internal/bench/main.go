package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"minik8s/internal/machine"
	"minik8s/internal/network/hosttest"
)

// figure is one line of the report.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Reach string  `json:"reach"` // the goal
	Bound string  `json:"bound"` // what limits it, measured in the same run if possible
}

// report collects figures.
type report struct {
	Date    string   `json:"date"`
	Cores   int      `json:"cores"`
	Load    string   `json:"load"` // of the machine, before the run
	Figures []figure `json:"figures"`
}

func (r *report) add(name string, value float64, unit, reach, bound string) {
	r.Figures = append(r.Figures, figure{name, value, unit, reach, bound})
	fmt.Printf("%-52s %10s   reach %-16s %s\n", name, format(value, unit), reach, bound)
}

func format(v float64, unit string) string {
	switch {
	case unit == "/s" || v >= 1000:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

// part is a group of figures that can be selected by name.
type part struct {
	name string
	run  func(*report) error
}

var parts = []part{
	{"size", size},
	{"start", start},
	{"idle", idle},
	{"workers", workers},
	{"elsewhere", elsewhere},
	{"masters", masterFigures},
	{"elections", elections},
	{"hollow", hollow},
	{"flush", flushed},
	{"api", apiFigures},
	{"scheduler", schedulerFigures},
	{"workloads", workloads},
	{"many", endToEnd},
	{"big", big},
	{"pods", pods},
	{"weight", weight},
	{"network", networkFigures},
	{"services", services},
	{"policies", policies},
	{"dns", dnsFigures},
	{"gateway", gatewayFigures},
	{"metrics", usageFigures},
	{"functions", functionFigures},
	{"gpu", gpuFigures},
	{"workflows", workflowFigures},
	{"streams", streams},
	{"tricks", tricks},
}

func main() {
	hosttest.Main()
	machine.Run(run)
}

func run() int {
	out := flag.String("out", "", "write the figures to this `file` as JSON")
	only := flag.String("only", "", "measure only these `parts`, separated by commas: size, start, idle, workers, elsewhere, masters, elections, hollow, flush, api, pods, weight, network, services, policies, dns, gateway, metrics, functions, gpu, workflows, streams, scheduler, workloads, many, big, tricks")
	flag.Parse()
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "bench: containers need root")
		return 1
	}
	r := &report{Date: time.Now().UTC().Format(time.RFC3339), Cores: runtime.NumCPU(), Load: load()}
	fmt.Printf("%d cores, load %s\n", r.Cores, r.Load)
	for _, p := range parts {
		if *only != "" && !strings.Contains(","+*only+",", ","+p.name+",") {
			continue
		}
		if err := p.run(r); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", p.name, err)
			return 1
		}
	}
	if *out != "" {
		b, err := json.MarshalIndent(r, "", "  ")
		if err == nil {
			err = os.WriteFile(*out, append(b, '\n'), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
	}
	return 0
}

func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

const binary = "bin/minik8sd"

func size(r *report) error {
	st, err := os.Stat(binary)
	if err != nil {
		return fmt.Errorf("%w: run make build first", err)
	}
	r.add("size of the one file", float64(st.Size())/1e6, "MB", "<= 80 MB", "everything linked: etcd, containerd, runc, the keeper")
	return nil
}

// calibrate measures how long this machine takes to write and sync 1 kB. A write cannot be faster.
func calibrate(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // in a directory that goes
	defer f.Close()           //nolint:errcheck // as above
	var times samples
	buf := make([]byte, 1024)
	for range 50 {
		began := time.Now()
		if _, err := f.Write(buf); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}
	return times.p(50), nil
}
