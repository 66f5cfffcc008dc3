package objects

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

	"minik8s/internal/bench/bed"
)

// The numbers of objects in the measurements of a large cluster.
const (
	bigPods   = 50_000
	bigPage   = 500
	bigResume = 10_000
)

// Big measures a large cluster: a new watch, pages of a list, and a watch that resumes after a restart.
func Big(r *bed.Report) error {
	return bed.WithDaemon(false, func(d *bed.Daemon) error { return largeCluster(r, d) })
}

func largeCluster(r *bed.Report, d *bed.Daemon) error {
	c, base, err := d.Secure(bed.Connections)
	if err != nil {
		return err
	}
	if _, _, err := bed.Hammer(bigPods, func(i int) error {
		return bed.Request(c, base, "POST", bed.PodsPath, bed.WaitingPod(fmt.Sprintf("p%06d", i)), nil)
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
func bigWatch(r *bed.Report, d *bed.Daemon, c *http.Client, base string) error {
	var added []float64
	var took time.Duration
	for range 3 {
		if err := bed.Request(c, base, "GET", "/debug/pprof/heap?gc=1", nil, nil); err != nil { // not counting garbage
			return err
		}
		time.Sleep(15 * time.Second) // so that freed memory is returned and not counted
		_, before, _ := bed.Memory(d)
		ctx, cancel := context.WithCancel(context.Background())
		began := time.Now()
		ch, err := bed.Watch(ctx, c, base+bed.PodsPath+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
		if err != nil {
			cancel()
			return err
		}
		peak := make(chan float64)
		done := make(chan struct{})
		go func() {
			most := before
			for {
				_, now, _ := bed.Memory(d)
				most = max(most, now)
				select {
				case <-done:
					peak <- most
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		}()
		_, err = bed.Wait(ch, time.Minute, func(e bed.Event) bool { return e.Type == "BOOKMARK" })
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
	r.Add(fmt.Sprintf("new watch of %d pods: memory it adds", bigPods), middle(added)/1024, "MiB", "<= 8 MiB",
		fmt.Sprintf("the most of the daemon's anonymous memory while it sends, median of 3; %.0f ms", bed.Ms(took)))
	return nil
}

// bigPages reads pods page by page, as kubectl get does: once of what rests, and once of what is written to between each two
// pages, so that all pages but the first are of a version that is past.
func bigPages(r *bed.Report, c *http.Client, base string) error {
	rest, err := readPages(c, base, func(int) error { return nil })
	if err != nil {
		return err
	}
	busy, err := readPages(c, base, func(i int) error {
		return bed.Request(c, base, "POST", bed.PodsPath, bed.WaitingPod(fmt.Sprintf("after-%d", i)), nil)
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("page of %d out of %d objects", bigPage, bigPods)
	r.Add(name+", p50", bed.Ms(rest.P(50)), "ms", "<= 15 ms", fmt.Sprintf("p99 %.1f ms", bed.Ms(rest.P(99))))
	r.Add(name+" that change, p50", bed.Ms(busy.P(50)), "ms", "<= 15 ms", fmt.Sprintf("p99 %.1f ms; of the store's history", bed.Ms(busy.P(99))))
	return nil
}

// readPages reads all pages of one list, and calls between after each.
func readPages(c *http.Client, base string, between func(page int) error) (times bed.Samples, err error) {
	next := ""
	for i := 0; ; i++ {
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []json.RawMessage `json:"items"`
		}
		t := time.Now()
		if err := bed.Request(c, base, "GET", fmt.Sprintf("%s?limit=%d&continue=%s", bed.PodsPath, bigPage, url.QueryEscape(next)), nil, &page); err != nil {
			return nil, err
		}
		times = append(times, time.Since(t))
		if len(page.Items) == 0 {
			return nil, errors.New("an empty page")
		}
		if next = page.Metadata.Continue; next == "" {
			return times, nil
		}
		if err := between(i); err != nil {
			return nil, err
		}
	}
}

// resume restarts the daemon and resumes a watch from before the restart.
func resume(r *bed.Report, d *bed.Daemon) error {
	if _, _, err := bed.Hammer(bigResume, func(i int) error {
		return d.Do("POST", bed.ConfigMapsPath, kilobyte(fmt.Sprintf("r%05d", i)), nil)
	}); err != nil {
		return err
	}
	var last bed.Event
	if err := d.Do("POST", bed.ConfigMapsPath, kilobyte("before"), &last.Object); err != nil {
		return err
	}
	if err := d.Do("POST", bed.ConfigMapsPath, kilobyte("missed"), nil); err != nil {
		return err
	}
	if err := d.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := d.Cmd.Wait(); err != nil {
		return err
	}
	if err := d.Launch(); err != nil {
		return err
	}
	if err := d.Ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	began := time.Now()
	ch, err := bed.Watch(ctx, d.HTTP, "http://minik8s"+bed.ConfigMapsPath+"?watch=1&resourceVersion="+last.Object.Metadata.ResourceVersion)
	if err != nil {
		return err
	}
	listed := 0
	if _, err := bed.Wait(ch, time.Minute, func(e bed.Event) bool {
		listed++
		return e.Object.Metadata.Name == "missed"
	}); err != nil {
		return err
	}
	r.Add(fmt.Sprintf("watch after a restart, %d objects: sent again", bigResume), float64(listed-1), "objects", "none",
		fmt.Sprintf("the one that was missed came after %.0f ms", bed.Ms(time.Since(began))))
	return nil
}

func middle(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return sorted[len(sorted)/2]
}
