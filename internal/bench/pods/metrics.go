package pods

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"minik8s/internal/bench/bed"
)

// What metrics cost is measured with so many pods on one node, asked so often.
const (
	usagePods   = 100
	usagePages  = 20
	usagePeriod = 20 * time.Second // each of: nobody asks, and somebody does every second
)

const (
	deploymentsPath = "/apis/apps/v1/namespaces/default/deployments"
	usagePath       = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
)

// Metrics measures what it costs to be asked what pods use, and how soon replicas follow a load.
func Metrics(r *bed.Report) error {
	if err := decisions(r); err != nil {
		return err
	}
	if err := bed.WithDaemon(true, func(d *bed.Daemon) error { return usageCosts(r, d) }); err != nil {
		return err
	}
	if err := bed.WithDaemon(true, func(d *bed.Daemon) error { return following(r, d, "defaults as upstream's", "<= 20 s", "") }); err != nil {
		return err
	}
	return bed.WithDaemon(true, func(d *bed.Daemon) error { return following(r, d, "with fast metrics", "<= 3 s", "1s") }, "--metrics-window=1s")
}

// decisions is what the autoscalers' controller itself costs: its package measures that, against an API that costs nothing.
func decisions(r *bed.Report) error {
	all, err := bed.Benchmark("./internal/controller/podautoscaler", "BenchmarkRound", 20)
	if err != nil {
		return err
	}
	const unit = "ms-of-a-core/round"
	used, ok := all[""][unit]
	if !ok {
		return fmt.Errorf("the benchmark of a round has no figure %s: %v", unit, all)
	}
	r.Add("decisions for 1,000 autoscalers over 10,000 pods, CPU of a round", used/1000, "s", "<= 0.1 s", "of one core, the controller's; in process, with an API that costs nothing")
	return nil
}

func usageCosts(r *bed.Report, d *bed.Daemon) error {
	if err := d.Do("POST", deploymentsPath, deploymentOf("web", usagePods, m{"name": "c", "image": "minik8s/hello", "imagePullPolicy": "IfNotPresent"}), nil); err != nil {
		return err
	}
	if err := readyPods(d, "web", usagePods); err != nil {
		return err
	}
	var node struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := d.Do("GET", "/api/v1/nodes", nil, &node); err != nil {
		return err
	}
	before, err := liveHeap(d)
	if err != nil {
		return err
	}
	idle, kept := quiet(d)
	asked, beside := own(d), bed.CPU(d)
	for end := time.Now().Add(usagePeriod); time.Now().Before(end); time.Sleep(time.Second) {
		if err := d.Do("GET", "/api/v1/nodes/"+node.Items[0].Metadata.Name+"/proxy/metrics/resource", nil, nil); err != nil {
			return err
		}
	}
	asked, beside = own(d)-asked, bed.CPU(d)-beside
	beside -= asked
	whole := own(d)
	for end := time.Now().Add(usagePeriod); time.Now().Before(end); time.Sleep(time.Second) {
		if err := d.Do("GET", usagePath, nil, nil); err != nil {
			return err
		}
	}
	whole = own(d) - whole
	after, err := liveHeap(d)
	if err != nil {
		return err
	}
	var pages bed.Samples
	for range usagePages {
		time.Sleep(1100 * time.Millisecond) // an answer is a second old at most: each is of a sample of its own, as for who asks now and then
		began := time.Now()
		if err := d.Do("GET", "/api/v1/nodes/"+node.Items[0].Metadata.Name+"/proxy/metrics/cadvisor", nil, nil); err != nil {
			return err
		}
		pages = append(pages, time.Since(began))
	}
	slices.Sort(pages)
	what := fmt.Sprintf("%d pods measured every second: ", usagePods)
	percent := func(used float64) float64 { return max(0, used-idle) / usagePeriod.Seconds() * 100 }
	r.Add(what+"CPU of the node", percent(asked), "%", "<= 1 %", fmt.Sprintf("of a core, the daemon's, more than the %.2f %% while nobody asks; the page of them all is sent, too; beside it the pods' shims used %.2f %%, and %.2f %% before",
		idle/usagePeriod.Seconds()*100, beside/usagePeriod.Seconds()*100, kept/usagePeriod.Seconds()*100))
	r.Add("  through metrics.k8s.io: CPU of node and master", percent(whole), "%", "", "of a core, more than while nobody asks")
	r.Add("  CPU while nobody asks", idle/usagePeriod.Seconds()*100, "%", "as without", "of a core, the whole daemon's with its heartbeats")
	r.Add("  live heap", after-before, "MiB", "<= 3 MiB", fmt.Sprintf("more than the %.1f MiB before; it is dropped a quarter of an hour after the last question", before))
	r.Add("  /metrics/cadvisor of all, p50", bed.Ms(pages.P(50)), "ms", "<= 10 ms", fmt.Sprintf("through the API; p99 %.1f ms; each with the sampling of all", bed.Ms(pages.P(99))))
	return nil
}

// quiet waits until the daemon has done what the start of pods leaves to do, and returns what it uses then while nobody
// asks, and what its shims use, in seconds of CPU for a usagePeriod.
func quiet(d *bed.Daemon) (daemons, shims float64) {
	daemons = math.Inf(1)
	for range 8 {
		used, all := own(d), bed.CPU(d)
		time.Sleep(usagePeriod / 2)
		used, all = 2*(own(d)-used), 2*(bed.CPU(d)-all)
		if used < daemons {
			daemons, shims = used, all-used
		}
		if daemons < usagePeriod.Seconds()/50 {
			break
		}
	}
	return daemons, shims
}

// own is the CPU time of the daemon alone. Beside a hundred pods it has a hundred shims, which collect their garbage when they
// like, and that has nothing to do with who asks.
func own(d *bed.Daemon) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.Cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return bed.CPUIn(b)
}

// liveHeap is what the daemon's heap holds after two collections, in MiB: buffers that wait to be used again, which anybody may
// have left there, survive one.
func liveHeap(d *bed.Daemon) (float64, error) {
	if err := d.Do("GET", "/debug/pprof/heap?gc=1", nil, nil); err != nil {
		return 0, err
	}
	resp, err := d.HTTP.Get("http://minik8s/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var n float64
		if _, err := fmt.Sscanf(lines.Text(), "# HeapAlloc = %g", &n); err == nil {
			return n / (1 << 20), nil
		}
	}
	return 0, errors.New("the heap's profile does not say what is live")
}

// following measures how long it takes from a load to a new pod that is ready. period is the autoscaler's; empty: 15 s.
func following(r *bed.Report, d *bed.Daemon, what, reach, period string) error {
	busy := m{"name": "c", "image": "busybox", "imagePullPolicy": "IfNotPresent", "command": []string{"sh", "-c", "while :; do if [ -e /go/now ]; then :; else sleep 0.05; fi; done"},
		"volumeMounts": []m{{"name": "go", "mountPath": "/go"}}, "resources": m{"requests": m{"cpu": "200m"}, "limits": m{"cpu": "400m"}}}
	dir, err := os.MkdirTemp("", "minik8s-bench-load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is empty but for a file
	deployment := deploymentOf("load", 1, busy)
	deployment["spec"].(m)["template"].(m)["spec"].(m)["volumes"] = []m{{"name": "go", "hostPath": m{"path": dir}}}
	if err := d.Do("POST", deploymentsPath, deployment, nil); err != nil {
		return err
	}
	hpa := m{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": m{"name": "load", "annotations": m{}},
		"spec": m{"maxReplicas": 3, "scaleTargetRef": m{"apiVersion": "apps/v1", "kind": "Deployment", "name": "load"},
			"metrics": []m{{"type": "Resource", "resource": m{"name": "cpu", "target": m{"type": "Utilization", "averageUtilization": 60}}}}}}
	if period != "" {
		hpa["metadata"] = m{"name": "load", "annotations": m{"minik8s.io/sync-period": period}}
	}
	if err := d.Do("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", hpa, nil); err != nil {
		return err
	}
	if err := readyPods(d, "load", 1); err != nil {
		return err
	}
	var seen struct {
		Status struct {
			CurrentMetrics []struct {
				Resource struct {
					Current struct{ AverageUtilization *int }
				}
			}
		}
	}
	if err := d.Until(2*time.Minute, func() bool { // it is known that there is nothing to do
		err := d.Do("GET", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/load", nil, &seen)
		if err != nil || len(seen.Status.CurrentMetrics) == 0 {
			return false
		}
		u := seen.Status.CurrentMetrics[0].Resource.Current.AverageUtilization
		return u != nil && *u < 60
	}); err != nil {
		return fmt.Errorf("the autoscaler knows of no usage: %w", err)
	}
	began := time.Now()
	if err := os.WriteFile(dir+"/now", nil, 0o644); err != nil {
		return err
	}
	if err := readyPods(d, "load", 2); err != nil {
		return err
	}
	r.Add("load step to a new pod Ready, "+what, time.Since(began).Seconds(), "s", reach, "once; the node does not have to pull the image")
	return nil
}

func deploymentOf(name string, replicas int, container m) m {
	labels := m{"app": name}
	return m{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": m{"name": name}, "spec": m{"replicas": replicas, "selector": m{"matchLabels": labels},
		"template": m{"metadata": m{"labels": labels}, "spec": m{"terminationGracePeriodSeconds": 0, "containers": []m{container}}}}}
}

// readyPods waits until a deployment has so many pods that are ready, or more.
func readyPods(d *bed.Daemon, deployment string, n int) error {
	var got struct{ Status struct{ ReadyReplicas int } }
	if err := d.Until(3*time.Minute, func() bool {
		return d.Do("GET", deploymentsPath+"/"+deployment, nil, &got) == nil && got.Status.ReadyReplicas >= n
	}); err != nil {
		return fmt.Errorf("%d pods of %s are ready, not %d: %w", got.Status.ReadyReplicas, deployment, n, err)
	}
	return nil
}
