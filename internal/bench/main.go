package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"minik8s/internal/bench/bed"
	"minik8s/internal/bench/machines"
	"minik8s/internal/bench/objects"
	"minik8s/internal/bench/pods"
	"minik8s/internal/bench/traffic"
	"minik8s/internal/bench/work"
	"minik8s/internal/machine"
	"minik8s/internal/network/hosttest"
)

// part is a group of figures that can be selected by name.
type part struct {
	name string
	run  func(*bed.Report) error
}

// parts are measured in this order.
var parts = []part{
	{"size", machines.Size},
	{"start", machines.Start},
	{"idle", machines.Idle},
	{"workers", machines.Workers},
	{"elsewhere", machines.Elsewhere},
	{"masters", func(r *bed.Report) error { return machines.Masters(r, *leadersKilled) }},
	{"elections", func(r *bed.Report) error { return machines.Elections(r, *loadedFor) }},
	{"faults", func(r *bed.Report) error { return machines.Faults(r, *faultsDone) }},
	{"hollow", func(r *bed.Report) error { return machines.Hollow(r, *hollowWorkers) }},
	{"flush", traffic.Flush},
	{"api", objects.API},
	{"scheduler", objects.Scheduler},
	{"workloads", pods.Workloads},
	{"many", objects.Many},
	{"big", objects.Big},
	{"pods", pods.StartAndEnd},
	{"weight", pods.Weight},
	{"network", traffic.Network},
	{"services", traffic.Services},
	{"policies", traffic.Policies},
	{"dns", traffic.DNS},
	{"gateway", traffic.Gateway},
	{"metrics", pods.Metrics},
	{"functions", work.Functions},
	{"gpu", work.GPU},
	{"workflows", work.Workflows},
	{"streams", pods.Streams},
	{"tricks", machines.Tricks},
}

// How much some parts measure.
var (
	loadedFor     = flag.Duration("for", 30*time.Second, "how long the part elections loads three masters") // an hour is asked for
	leadersKilled = flag.Int("kills", 20, "how often the part masters kills the leader")                    // 100 times are asked for
	faultsDone    = flag.Int("faults", 25, "how many faults the part faults does to three masters")         // 1000 times are asked for
	hollowWorkers = flag.Int("hollow", 1000, "how many workers without containers the part hollow has")
)

func main() {
	hosttest.Main()
	machine.Run(run)
}

func run() int {
	out := flag.String("out", "", "write the figures to this `file` as JSON")
	only := flag.String("only", "", "measure only these `parts`, separated by commas: size, start, idle, workers, elsewhere, masters, elections, faults, hollow, flush, api, pods, weight, network, services, policies, dns, gateway, metrics, functions, gpu, workflows, streams, scheduler, workloads, many, big, tricks")
	flag.Parse()
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "bench: containers need root")
		return 1
	}
	r := &bed.Report{Date: time.Now().UTC().Format(time.RFC3339), Cores: runtime.NumCPU(), Load: load()}
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
