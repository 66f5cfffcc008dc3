package machines

import (
	"fmt"
	"strings"
	"time"

	"minik8s/internal/bench/bed"
)

// Tricks measures what each optimisation gains that is not plain code: the figure with it, and the figure of a daemon
// that is told not to use it. An optimisation without a gain should be removed.
func Tricks(r *bed.Report) error {
	for _, t := range []struct {
		name, without, unit string
		measure             func(args ...string) (float64, error)
	}{
		{"empty directory to ready", "early-election", "ms", startToReady},
		{"memory at idle", "give-back", "MiB", idleMemory},
		{"memory with 10,000 objects of 8 kB", "collector", "MiB", loadedMemory},
		{"POST to Running, p50", "warm", "ms", startOfPods},
	} {
		with, err := t.measure()
		if err != nil {
			return err
		}
		without, err := t.measure("--without", t.without)
		if err != nil {
			return err
		}
		r.Add(t.name, with, t.unit, "", fmt.Sprintf("without %s: %s", t.without, bed.Format(without, t.unit)))
	}
	return nil
}

func startToReady(args ...string) (float64, error) {
	var times bed.Samples
	for range 3 {
		began := time.Now()
		if err := bed.WithDaemon(false, func(*bed.Daemon) error {
			times = append(times, time.Since(began))
			return nil
		}, args...); err != nil {
			return 0, err
		}
	}
	return bed.Ms(times.P(50)), nil
}

func idleMemory(args ...string) (mib float64, err error) {
	err = bed.WithDaemon(true, func(d *bed.Daemon) error {
		time.Sleep(bed.Settled)
		pss, _, _ := bed.Memory(d)
		mib = pss / 1024
		return nil
	}, args...)
	return mib, err
}

func loadedMemory(args ...string) (mib float64, err error) {
	const objects = 10_000
	err = bed.WithDaemon(false, func(d *bed.Daemon) error {
		c, base, err := d.Secure(bed.Connections)
		if err != nil {
			return err
		}
		data := bed.M{"k": strings.Repeat("x", 8000)}
		if _, _, err := bed.Hammer(objects, func(i int) error {
			return bed.Request(c, base, "POST", bed.ConfigMapsPath, bed.M{"apiVersion": "v1", "kind": "ConfigMap", "metadata": bed.M{"name": fmt.Sprint("big-", i)}, "data": data}, nil)
		}); err != nil {
			return err
		}
		pss, _, _ := bed.Memory(d)
		mib = pss / 1024
		return nil
	}, args...)
	return mib, err
}

func startOfPods(args ...string) (p50 float64, err error) {
	err = bed.WithDaemon(true, func(d *bed.Daemon) error {
		var times bed.Samples
		for i := range 10 {
			name := fmt.Sprint("pod-", i)
			began := time.Now()
			if err := d.Do("POST", bed.PodsPath, bed.Pod(name, "busybox", bed.Polite...), nil); err != nil {
				return err
			}
			var p struct{ Status struct{ Phase string } }
			if err := d.Until(20*time.Second, func() bool {
				return d.Do("GET", bed.PodsPath+"/"+name, nil, &p) == nil && p.Status.Phase == "Running"
			}); err != nil {
				return err
			}
			times = append(times, time.Since(began))
			time.Sleep(300 * time.Millisecond) // until the next sandbox is made
		}
		p50 = bed.Ms(times.P(50))
		return nil
	}, args...)
	return p50, err
}
