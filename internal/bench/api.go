package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	listed  = 2200
	creates = 20000
	gets    = 40000
)

// kilobyte is a ConfigMap of about 1 kB.
func kilobyte(name string) m {
	return m{"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"name": name}, "data": m{"k": strings.Repeat("x", 850)}}
}

// apiFigures measures the API over TLS, with the client on the same cores.
func apiFigures(r *report) error {
	return withDaemon(false, func(d *daemon) error { return overTLS(r, d) })
}

func overTLS(r *report, d *daemon) error {
	sync, err := calibrate(d.dir)
	if err != nil {
		return err
	}
	c, base, err := d.secure(connections)
	if err != nil {
		return err
	}
	// Warm-up: opens the connections and lets the heap reach its size.
	if _, _, err := hammer(listed, func(i int) error {
		return request(c, base, "POST", cmPath, kilobyte(fmt.Sprintf("warm-%d", i)), nil)
	}); err != nil {
		return err
	}
	if err := lists(r, c, base); err != nil {
		return err
	}
	floor, _, err := hammer(20000, func(int) error { return request(c, base, "GET", "/healthz", nil, nil) })
	if err != nil {
		return err
	}
	before := cpu(d)
	rate, times, err := hammer(creates, func(i int) error {
		return request(c, base, "POST", cmPath, kilobyte(fmt.Sprintf("made-%d", i)), nil)
	})
	if err != nil {
		return err
	}
	r.add("creates of 1 kB at 16 connections", rate, "/s", ">= 12,000/s", fmt.Sprintf("%.2f of /healthz at %.0f/s; a synced write takes %.2f ms", rate/floor, floor, ms(sync)))
	r.add("  p99 of a create", ms(times.p(99)), "ms", "<= 5 ms", "")
	r.add("  CPU of a create", 1e6*(cpu(d)-before)/creates, "us", "", "of the daemon, all threads: a figure that a busy machine changes little")
	before = cpu(d)
	rate, times, err = hammer(gets, func(i int) error {
		return request(c, base, "GET", fmt.Sprintf("%s/warm-%d", cmPath, i%listed+1), nil, nil)
	})
	if err != nil {
		return err
	}
	r.add("gets at 16 connections", rate, "/s", ">= 15,000/s", fmt.Sprintf("%.2f of /healthz at %.0f/s, the same server and client doing nothing", rate/floor, floor))
	r.add("  p99 of a get", ms(times.p(99)), "ms", "", "")
	r.add("  CPU of a get", 1e6*(cpu(d)-before)/gets, "us", "", "of the daemon")
	return latency(r, c, base, sync)
}

// lists reads all objects, one list after the other.
func lists(r *report, c *http.Client, base string) error {
	var times samples
	for range 50 {
		t := time.Now()
		if err := request(c, base, "GET", cmPath, nil, nil); err != nil {
			return err
		}
		times = append(times, time.Since(t))
	}
	r.add(fmt.Sprintf("list of %d objects, p50", listed), ms(times.p(50)), "ms", "<= 8 ms", "2.6 MB over TLS and two cores, read by the client")
	return nil
}

// latency measures the time from the start of a write to its event on one watch.
func latency(r *report, c *http.Client, base string, sync time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch, err := watch(ctx, c, base+"/api/v1/namespaces/kube-public/configmaps?watch=1&fieldSelector=metadata.name%3Dseen")
	if err != nil {
		return err
	}
	path := "/api/v1/namespaces/kube-public/configmaps"
	obj := kilobyte("seen")
	if err := request(c, base, "POST", path, obj, nil); err != nil {
		return err
	}
	if _, err := wait(ch, 10*time.Second, func(e seen) bool { return e.Object.Metadata.Name == "seen" }); err != nil {
		return err
	}
	var times samples
	for i := range 500 {
		obj["data"] = m{"k": strings.Repeat("x", 850), "i": fmt.Sprint(i)}
		t := time.Now()
		if err := request(c, base, "PUT", path+"/seen", obj, nil); err != nil {
			return err
		}
		e, err := wait(ch, 10*time.Second, func(e seen) bool { return e.Type == "MODIFIED" })
		if err != nil {
			return err
		}
		times = append(times, e.at.Sub(t))
	}
	r.add("write to watch event, p50", ms(times.p(50)), "ms", "<= 0.8 ms", fmt.Sprintf("%.1f x a synced write of 1 kB (%.2f ms)", float64(times.p(50))/float64(sync), ms(sync)))
	r.add("write to watch event, p99", ms(times.p(99)), "ms", "<= 2 ms", "")
	return nil
}
