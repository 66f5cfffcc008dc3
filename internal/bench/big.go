package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// The numbers of objects in the measurements of a large cluster.
const (
	bigPods   = 50_000
	bigPage   = 500
	bigResume = 10_000
)

// big measures a large cluster: a new watch, pages of a list, and a watch that resumes after a restart.
func big(r *report) error {
	return withDaemon(false, func(d *daemon) error { return largeCluster(r, d) })
}

func largeCluster(r *report, d *daemon) error {
	c, base, err := d.secure(connections)
	if err != nil {
		return err
	}
	if _, _, err := hammer(bigPods, func(i int) error {
		return request(c, base, "POST", podsPath, waitingPod(fmt.Sprintf("p%06d", i)), nil)
	}); err != nil {
		return err
	}
	if err := bigWatch(r, d, c, base); err != nil {
		return err
	}
	if err := bigPages(r, c, base); err != nil {
		return err
	}
	return resume(r, d)
}

// bigWatch opens a watch on all pods and measures the daemon's memory while the watch sends the existing pods.
func bigWatch(r *report, d *daemon, c *http.Client, base string) error {
	var added []float64
	var took time.Duration
	for range 3 {
		if err := request(c, base, "GET", "/debug/pprof/heap?gc=1", nil, nil); err != nil { // not counting garbage
			return err
		}
		time.Sleep(15 * time.Second) // so that freed memory is returned and not counted
		_, before, _ := memory(d)
		ctx, cancel := context.WithCancel(context.Background())
		began := time.Now()
		ch, err := watch(ctx, c, base+podsPath+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
		if err != nil {
			cancel()
			return err
		}
		peak := make(chan float64)
		done := make(chan struct{})
		go func() {
			most := before
			for {
				_, now, _ := memory(d)
				most = max(most, now)
				select {
				case <-done:
					peak <- most
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		}()
		_, err = wait(ch, time.Minute, func(e seen) bool { return e.Type == "BOOKMARK" })
		took = time.Since(began)
		close(done)
		added = append(added, <-peak-before)
		cancel()
		for range ch { //nolint:revive // the rest is of no interest
		}
		if err != nil {
			return err
		}
	}
	r.add(fmt.Sprintf("new watch of %d pods: memory it adds", bigPods), middle(added)/1024, "MiB", "<= 8 MiB",
		fmt.Sprintf("the most of the daemon's anonymous memory while it sends, median of 3; %.0f ms", ms(took)))
	return nil
}

// bigPages reads pods page by page, as kubectl get does.
func bigPages(r *report, c *http.Client, base string) error {
	var times samples
	for range 2 {
		next := ""
		for {
			var page struct {
				Metadata struct {
					Continue string `json:"continue"`
				} `json:"metadata"`
				Items []json.RawMessage `json:"items"`
			}
			t := time.Now()
			if err := request(c, base, "GET", fmt.Sprintf("%s?limit=%d&continue=%s", podsPath, bigPage, url.QueryEscape(next)), nil, &page); err != nil {
				return err
			}
			times = append(times, time.Since(t))
			if len(page.Items) == 0 {
				return errors.New("an empty page")
			}
			if next = page.Metadata.Continue; next == "" {
				break
			}
		}
		// The second time, something has changed since the first page.
		if err := request(c, base, "POST", podsPath, waitingPod("after"), nil); err != nil {
			break //nolint:nilerr // it is there already
		}
	}
	r.add(fmt.Sprintf("page of %d out of %d objects, p50", bigPage, bigPods), ms(times.p(50)), "ms", "<= 15 ms", fmt.Sprintf("p99 %.1f ms", ms(times.p(99))))
	return nil
}

// resume restarts the daemon and resumes a watch from before the restart.
func resume(r *report, d *daemon) error {
	if _, _, err := hammer(bigResume, func(i int) error {
		return d.do("POST", cmPath, kilobyte(fmt.Sprintf("r%05d", i)), nil)
	}); err != nil {
		return err
	}
	var last seen
	if err := d.do("POST", cmPath, kilobyte("before"), &last.Object); err != nil {
		return err
	}
	if err := d.do("POST", cmPath, kilobyte("missed"), nil); err != nil {
		return err
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := d.cmd.Wait(); err != nil {
		return err
	}
	if err := d.launch(); err != nil {
		return err
	}
	if err := d.ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	began := time.Now()
	ch, err := watch(ctx, d.http, "http://minik8s"+cmPath+"?watch=1&resourceVersion="+last.Object.Metadata.ResourceVersion)
	if err != nil {
		return err
	}
	listed := 0
	if _, err := wait(ch, time.Minute, func(e seen) bool {
		listed++
		return e.Object.Metadata.Name == "missed"
	}); err != nil {
		return err
	}
	r.add(fmt.Sprintf("watch after a restart, %d objects: sent again", bigResume), float64(listed-1), "objects", "none",
		fmt.Sprintf("the one that was missed came after %.0f ms", ms(time.Since(began))))
	return nil
}

func middle(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return sorted[len(sorted)/2]
}
