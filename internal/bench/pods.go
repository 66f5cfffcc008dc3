package main

import (
	"context"
	"fmt"
	"time"
)

const (
	oneByOne = 30
	atOnce   = 100
)

// pods measures real pods with one container.
func pods(r *report) error {
	return withDaemon(true, func(d *daemon) error { return realPods(r, d) })
}

func realPods(r *report, d *daemon) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch, err := watch(ctx, d.http, "http://minik8s"+podsPath+"?watch=1")
	if err != nil {
		return err
	}
	bare, err := bareStarts(d)
	if err != nil {
		return err
	}
	if err := sequential(r, d, ch, bare); err != nil {
		return err
	}
	return together(r, d, ch, bare)
}

// sequential measures pods that are started one after the other.
func sequential(r *report, d *daemon, ch <-chan seen, bare samples) error {
	var scheduled, running, gone samples
	for i := range oneByOne {
		name := fmt.Sprintf("one-%d", i)
		began := time.Now()
		if err := d.do("POST", podsPath, pod(name, "busybox", polite...), nil); err != nil {
			return err
		}
		bound := false
		e, err := wait(ch, 20*time.Second, func(e seen) bool {
			if !bound && e.Object.Metadata.Name == name && e.Object.Spec.NodeName != "" {
				bound = true
				scheduled = append(scheduled, e.at.Sub(began))
			}
			return e.Object.Metadata.Name == name && e.Object.Status.Phase == "Running"
		})
		if err != nil {
			return err
		}
		running = append(running, e.at.Sub(began))
		time.Sleep(150 * time.Millisecond) // like a person's pace; the shell in the pod has set its trap by then
		began = time.Now()
		if err := d.do("DELETE", podsPath+"/"+name, nil, nil); err != nil {
			return err
		}
		e, err = wait(ch, 20*time.Second, func(e seen) bool { return e.Object.Metadata.Name == name && e.Type == "DELETED" })
		if err != nil {
			return err
		}
		gone = append(gone, e.at.Sub(began))
		time.Sleep(150 * time.Millisecond)
	}
	floor := fmt.Sprintf("%.2f x the bare create and start (%.1f ms)", float64(running.p(50))/float64(bare.p(50)), ms(bare.p(50)))
	r.add("POST to Running seen by watch, p50", ms(running.p(50)), "ms", "<= 30 ms", floor)
	r.add("POST to Running seen by watch, p99", ms(running.p(99)), "ms", "<= 60 ms", fmt.Sprintf("bare p99 %.1f ms", ms(bare.p(99))))
	r.add("POST to scheduled, p50", ms(scheduled.p(50)), "ms", "<= 1.5 ms", "two synced writes")
	r.add("delete to gone, p50", ms(gone.p(50)), "ms", "<= 100 ms", "the signal, and what the kernel takes to end namespaces")
	return nil
}

// together measures many pods at once.
func together(r *report, d *daemon, ch <-chan seen, bare samples) error {
	began := time.Now()
	rate, _, err := hammer(atOnce, func(i int) error {
		return d.do("POST", podsPath, pod(fmt.Sprintf("many-%d", i), "busybox", polite...), nil)
	})
	if err != nil {
		return err
	}
	up := map[string]bool{}
	e, err := wait(ch, 2*time.Minute, func(e seen) bool {
		if e.Object.Status.Phase == "Running" {
			up[e.Object.Metadata.Name] = true
		}
		return len(up) == atOnce
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods run: %w", len(up), atOnce, err)
	}
	took := e.at.Sub(began)
	r.add(fmt.Sprintf("%d pods at once: all Running", atOnce), took.Seconds(), "s", "<= 1.8 s",
		fmt.Sprintf("%.1f ms each; bare, one by one, %.1f ms; posted at %.0f/s", ms(took)/atOnce, ms(bare.p(50)), rate))
	time.Sleep(time.Second)
	began = time.Now()
	if err := d.do("DELETE", podsPath, nil, nil); err != nil {
		return err
	}
	gone := map[string]bool{}
	e, err = wait(ch, 2*time.Minute, func(e seen) bool {
		if e.Type == "DELETED" {
			gone[e.Object.Metadata.Name] = true
		}
		return len(gone) == atOnce
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods are gone: %w", len(gone), atOnce, err)
	}
	r.add(fmt.Sprintf("%d pods at once: all gone", atOnce), e.at.Sub(began).Seconds(), "s", "<= 0.8 s", "")
	return nil
}
