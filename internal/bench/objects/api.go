package objects

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"minik8s/internal/bench/bed"
)

const (
	listed  = 2200
	creates = 20000
	gets    = 40000
)

// m is an object as JSON.
type m = bed.M

// kilobyte is a ConfigMap of about 1 kB.
func kilobyte(name string) m {
	return m{"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"name": name}, "data": m{"k": strings.Repeat("x", 850)}}
}

// API measures the API over TLS, with the client on the same cores.
func API(r *bed.Report) error {
	return bed.WithDaemon(false, func(d *bed.Daemon) error { return overTLS(r, d) })
}

func overTLS(r *bed.Report, d *bed.Daemon) error {
	sync, err := bed.Calibrate(d.Dir)
	if err != nil {
		return err
	}
	c, base, err := d.Secure(bed.Connections)
	if err != nil {
		return err
	}
	// Warm-up: opens the connections and lets the heap reach its size.
	if _, _, err := bed.Hammer(listed, func(i int) error {
		return bed.Request(c, base, "POST", bed.ConfigMapsPath, kilobyte(fmt.Sprintf("warm-%d", i)), nil)
	}); err != nil {
		return err
	}
	if err := lists(r, c, base); err != nil {
		return err
	}
	floor, _, err := bed.Hammer(20000, func(int) error { return bed.Request(c, base, "GET", "/healthz", nil, nil) })
	if err != nil {
		return err
	}
	before := bed.CPU(d)
	rate, times, err := bed.Hammer(creates, func(i int) error {
		return bed.Request(c, base, "POST", bed.ConfigMapsPath, kilobyte(fmt.Sprintf("made-%d", i)), nil)
	})
	if err != nil {
		return err
	}
	r.Add("creates of 1 kB at 16 connections", rate, "/s", ">= 12,000/s", fmt.Sprintf("%.2f of /healthz at %.0f/s; a synced write takes %.2f ms", rate/floor, floor, bed.Ms(sync)))
	r.Add("  p99 of a create", bed.Ms(times.P(99)), "ms", "<= 5 ms", "")
	r.Add("  CPU of a create", 1e6*(bed.CPU(d)-before)/creates, "us", "", "of the daemon, all threads: a figure that a busy machine changes little")
	before = bed.CPU(d)
	rate, times, err = bed.Hammer(gets, func(i int) error {
		return bed.Request(c, base, "GET", fmt.Sprintf("%s/warm-%d", bed.ConfigMapsPath, i%listed+1), nil, nil)
	})
	if err != nil {
		return err
	}
	r.Add("gets at 16 connections", rate, "/s", ">= 15,000/s", fmt.Sprintf("%.2f of /healthz at %.0f/s, the same server and client doing nothing", rate/floor, floor))
	r.Add("  p99 of a get", bed.Ms(times.P(99)), "ms", "", "")
	r.Add("  CPU of a get", 1e6*(bed.CPU(d)-before)/gets, "us", "", "of the daemon")
	return latency(r, c, base, sync)
}

// lists reads all objects, one list after the other.
func lists(r *bed.Report, c *http.Client, base string) error {
	var times bed.Samples
	for range 50 {
		t := time.Now()
		if err := bed.Request(c, base, "GET", bed.ConfigMapsPath, nil, nil); err != nil {
			return err
		}
		times = append(times, time.Since(t))
	}
	r.Add(fmt.Sprintf("list of %d objects, p50", listed), bed.Ms(times.P(50)), "ms", "<= 8 ms", "2.6 MB over TLS and two cores, read by the client")
	return nil
}

// latency measures the time from the start of a write to its event on one watch.
func latency(r *bed.Report, c *http.Client, base string, sync time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch, err := bed.Watch(ctx, c, base+"/api/v1/namespaces/kube-public/configmaps?watch=1&fieldSelector=metadata.name%3Dseen")
	if err != nil {
		return err
	}
	path := "/api/v1/namespaces/kube-public/configmaps"
	obj := kilobyte("seen")
	if err := bed.Request(c, base, "POST", path, obj, nil); err != nil {
		return err
	}
	if _, err := bed.Wait(ch, 10*time.Second, func(e bed.Event) bool { return e.Object.Metadata.Name == "seen" }); err != nil {
		return err
	}
	var times bed.Samples
	for i := range 500 {
		obj["data"] = m{"k": strings.Repeat("x", 850), "i": fmt.Sprint(i)}
		t := time.Now()
		if err := bed.Request(c, base, "PUT", path+"/seen", obj, nil); err != nil {
			return err
		}
		e, err := bed.Wait(ch, 10*time.Second, func(e bed.Event) bool { return e.Type == "MODIFIED" })
		if err != nil {
			return err
		}
		times = append(times, e.At.Sub(t))
	}
	r.Add("write to watch event, p50", bed.Ms(times.P(50)), "ms", "<= 0.8 ms", fmt.Sprintf("%.1f x a synced write of 1 kB (%.2f ms)", float64(times.P(50))/float64(sync), bed.Ms(sync)))
	r.Add("write to watch event, p99", bed.Ms(times.P(99)), "ms", "<= 2 ms", "")
	return nil
}
