package traffic

import (
	"fmt"
	"os"
	"os/exec"

	"minik8s/internal/bench/bed"
)

// Gateway measures the gateway and nginx, by turns, before the same backend.
func Gateway(r *bed.Report) error {
	if _, err := exec.LookPath("nginx"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: gateway is left out: there is no nginx, see deploy/benchtools.sh")
		return nil
	}
	all, err := bed.Benchmark("./internal/gateway", "BenchmarkAgainstNginx", 1)
	if err != nil {
		return err
	}
	for _, n := range []string{"32", "1"} {
		f := all["connections="+n]
		if len(f) == 0 {
			return fmt.Errorf("no figures of %s connections: %v", n, all)
		}
		r.Add("gateway: requests/s of nginx, "+n+" connections", f["of-nginx"], "x", ">= 0.6", fmt.Sprintf("%.0f/s and %.0f/s", f["req/s"], f["nginx-req/s"]))
		r.Add("  p99, of nginx's", f["p99-ms"]/f["nginx-p99-ms"], "x", "<= 1.5", fmt.Sprintf("%.2f and %.2f ms", f["p99-ms"], f["nginx-p99-ms"]))
	}
	return nil
}
