package pods

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"minik8s/internal/bench/bed"
)

const (
	weighed  = 50   // pods whose weight is measured
	resting  = 100  // pods beside which the CPU at rest is measured
	passing  = 1000 // pods that come and go, resting at a time
	crowd    = 500  // pods on one node
	restTime = 30 * time.Second
)

// still is a program that does nothing.
var still = []string{"sleep", "1000000"}

// Weight measures what pods cost beside their programs: while they do nothing, and when they are gone.
func Weight(r *bed.Report) error {
	if err := bed.WithDaemon(true, func(d *bed.Daemon) error { return weighPods(r, d) }); err != nil {
		return err
	}
	return bed.WithDaemon(true, func(d *bed.Daemon) error { return crowded(r, d) }, "--max-pods=600", "--pod-cidr=10.244.0.0/22") // more addresses than a node gets by itself
}

func weighPods(r *bed.Report, d *bed.Daemon) error {
	time.Sleep(bed.Settled)
	before, _, _ := bed.Memory(d)
	free := available()
	if err := runPods(d, "still", 0, weighed); err != nil {
		return err
	}
	time.Sleep(bed.Settled)
	after, _, n := bed.Memory(d)
	own, _, _ := bed.MemoryOf("/nowhere", d.Cmd.Process.Pid)
	r.Add(fmt.Sprintf("memory a pod adds beside its program, %d idle pods", weighed), (after-before)/1024/weighed, "MiB", "<= 1.0 MiB",
		fmt.Sprintf("PSS; helpers %.2f MiB each (%d processes), the daemon %.2f more for each", (after-own)/1024/weighed, n-1, (own-before)/1024/weighed))
	r.Add("  by the machine's MemAvailable", (free-available())/1024/weighed, "MiB", "", "with the program, its pages of the kernel, namespaces and cgroups")
	if err := runPods(d, "still", weighed, resting); err != nil {
		return err
	}
	time.Sleep(bed.Settled)
	used := bed.CPU(d)
	time.Sleep(restTime)
	r.Add(fmt.Sprintf("CPU at rest with %d pods", resting), 100*(bed.CPU(d)-used)/restTime.Seconds(), "%", "<= 0.3 %", "of a core; clock ticks of 10 ms")
	if err := endPods(d); err != nil {
		return err
	}
	for i := range passing/resting - 1 {
		if err := runPods(d, fmt.Sprintf("pass-%d", i), 0, resting); err != nil {
			return err
		}
		if err := endPods(d); err != nil {
			return err
		}
	}
	time.Sleep(restTime)
	pss, anon, n := bed.Memory(d)
	r.Add(fmt.Sprintf("memory %.0f s after %d pods came and went", restTime.Seconds(), passing), pss/1024, "MiB", "<= 60 MiB",
		fmt.Sprintf("PSS of %d processes, %.0f MiB anonymous; before them %.0f MiB", n, anon/1024, before/1024))
	return nil
}

func crowded(r *bed.Report, d *bed.Daemon) error {
	began := time.Now()
	if err := runPods(d, "crowd", 0, crowd); err != nil {
		return err
	}
	r.Add(fmt.Sprintf("%d pods on one node: all Running", crowd), time.Since(began).Seconds(), "s", "<= 12 s", "")
	time.Sleep(bed.Settled)
	pss, anon, n := bed.Memory(d)
	r.Add(fmt.Sprintf("%d pods on one node: memory of daemon and helpers", crowd), pss/1024, "MiB", "<= 500 MiB", fmt.Sprintf("PSS of %d processes, %.0f MiB anonymous", n, anon/1024))
	return endPods(d)
}

// runPods creates pods of still and waits until all of them run.
func runPods(d *bed.Daemon, prefix string, from, to int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch, err := bed.Watch(ctx, d.HTTP, "http://minik8s"+bed.PodsPath+"?watch=1")
	if err != nil {
		return err
	}
	if _, _, err := bed.Hammer(to-from, func(i int) error {
		return d.Do("POST", bed.PodsPath, bed.Pod(fmt.Sprintf("%s-%d", prefix, from+i), "busybox", still...), nil)
	}); err != nil {
		return err
	}
	up := map[string]bool{}
	_, err = bed.Wait(ch, 3*time.Minute, func(e bed.Event) bool {
		if e.Object.Status.Phase == "Running" && strings.HasPrefix(e.Object.Metadata.Name, prefix+"-") {
			up[e.Object.Metadata.Name] = true
		}
		return len(up) == to
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods run: %w", len(up), to, err)
	}
	return nil
}

// endPods deletes all pods at once and waits until none is there. The program does not heed SIGTERM, as a container's first process;
// with no grace period at all the pods would be gone before their containers, and the next ones find no room.
func endPods(d *bed.Daemon) error {
	if err := d.Do("DELETE", bed.PodsPath+"?gracePeriodSeconds=1", nil, nil); err != nil {
		return err
	}
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	return d.Until(2*time.Minute, func() bool {
		time.Sleep(50 * time.Millisecond) // the question costs, too
		return d.Do("GET", bed.PodsPath+"?limit=1", nil, &list) == nil && len(list.Items) == 0
	})
}

// available is the machine's MemAvailable in KiB.
func available() (kib float64) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "MemAvailable: %g kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}
