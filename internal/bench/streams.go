package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"minik8s/internal/client/remote"
	"minik8s/internal/machine"
)

const streamed = 100

// streams measures exec and logs through the API server, which passes them on to the kubelet's server, and logs directly
// at the kubelet's server, which is their lower limit.
func streams(r *report) error {
	return withDaemon(true, func(d *daemon) error { return execAndLogs(r, d) })
}

func execAndLogs(r *report, d *daemon) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ch, err := watch(ctx, d.http, "http://minik8s"+podsPath+"?watch=1")
	if err != nil {
		return err
	}
	if err := d.until(time.Minute, func() bool { return imagePresent(d) }); err != nil {
		return err
	}
	if err := d.do("POST", podsPath, pod("talks", "busybox", polite...), nil); err != nil {
		return err
	}
	if _, err := wait(ch, time.Minute, func(s seen) bool { return s.Object.Metadata.Name == "talks" && s.Object.Status.Phase == "Running" }); err != nil {
		return err
	}
	c, err := remote.FromKubeconfig(filepath.Join(d.dir, "admin.kubeconfig"), "")
	if err != nil {
		return err
	}
	defer c.Close()
	execs, err := repeat(func() error {
		return c.Exec(ctx, "default", "talks", "", []string{"true"}, remote.Streams{Stdout: io.Discard, Stderr: io.Discard})
	})
	if err != nil {
		return err
	}
	h, base, err := d.secure(1)
	if err != nil {
		return err
	}
	logs, err := repeat(func() error { return read(h, base+podsPath+"/talks/log") })
	if err != nil {
		return err
	}
	floor := "no kubelet's server"
	if direct, err := repeat(func() error { return read(h, "https://"+machine.Address+":10250/containerLogs/default/talks/c") }); err == nil {
		floor = fmt.Sprintf("%.2f ms directly at the kubelet", ms(direct.p(50)))
	}
	r.add("exec of true in a pod, p50", ms(execs.p(50)), "ms", "direct + 3 ms", "the time of runc, and a new connection")
	r.add("  p95", ms(execs.p(95)), "ms", "", "")
	r.add("a log, p50", ms(logs.p(50)), "ms", "direct + 3 ms", floor)
	return nil
}

// repeat measures something that is done again and again, after a first time that is not counted.
func repeat(do func() error) (samples, error) {
	var times samples
	for i := range streamed + 1 {
		began := time.Now()
		if err := do(); err != nil {
			return nil, err
		}
		if i > 0 {
			times = append(times, time.Since(began))
		}
	}
	return times, nil
}

// read reads an answer to its end.
func read(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
