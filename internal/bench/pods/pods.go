package pods

import (
	"context"
	"fmt"
	"time"

	"minik8s/internal/bench/bed"
)

const (
	oneByOne = 30
	atOnce   = 100
)

// m is an object as JSON.
type m = bed.M

// StartAndEnd measures real pods with one container.
func StartAndEnd(r *bed.Report) error {
	return bed.WithDaemon(true, func(d *bed.Daemon) error { return realPods(r, d) })
}

func realPods(r *bed.Report, d *bed.Daemon) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch, err := bed.Watch(ctx, d.HTTP, "http://minik8s"+bed.PodsPath+"?watch=1")
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
func sequential(r *bed.Report, d *bed.Daemon, ch <-chan bed.Event, bare bed.Samples) error {
	var scheduled, running, gone bed.Samples
	for i := range oneByOne {
		name := fmt.Sprintf("one-%d", i)
		began := time.Now()
		if err := d.Do("POST", bed.PodsPath, bed.Pod(name, "busybox", bed.Polite...), nil); err != nil {
			return err
		}
		bound := false
		e, err := bed.Wait(ch, 20*time.Second, func(e bed.Event) bool {
			if !bound && e.Object.Metadata.Name == name && e.Object.Spec.NodeName != "" {
				bound = true
				scheduled = append(scheduled, e.At.Sub(began))
			}
			return e.Object.Metadata.Name == name && e.Object.Status.Phase == "Running"
		})
		if err != nil {
			return err
		}
		running = append(running, e.At.Sub(began))
		time.Sleep(150 * time.Millisecond) // like a person's pace; the shell in the pod has set its trap by then
		began = time.Now()
		if err := d.Do("DELETE", bed.PodsPath+"/"+name, nil, nil); err != nil {
			return err
		}
		e, err = bed.Wait(ch, 20*time.Second, func(e bed.Event) bool { return e.Object.Metadata.Name == name && e.Type == "DELETED" })
		if err != nil {
			return err
		}
		gone = append(gone, e.At.Sub(began))
		time.Sleep(150 * time.Millisecond)
	}
	floor := fmt.Sprintf("%.2f x the bare create and start (%.1f ms)", float64(running.P(50))/float64(bare.P(50)), bed.Ms(bare.P(50)))
	r.Add("POST to Running seen by watch, p50", bed.Ms(running.P(50)), "ms", "<= 30 ms", floor)
	r.Add("POST to Running seen by watch, p99", bed.Ms(running.P(99)), "ms", "<= 60 ms", fmt.Sprintf("bare p99 %.1f ms", bed.Ms(bare.P(99))))
	r.Add("POST to scheduled, p50", bed.Ms(scheduled.P(50)), "ms", "<= 1.5 ms", "two synced writes")
	r.Add("delete to gone, p50", bed.Ms(gone.P(50)), "ms", "<= 100 ms", "the signal, and what the kernel takes to end namespaces")
	return nil
}

// together measures many pods at once.
func together(r *bed.Report, d *bed.Daemon, ch <-chan bed.Event, bare bed.Samples) error {
	began := time.Now()
	rate, _, err := bed.Hammer(atOnce, func(i int) error {
		return d.Do("POST", bed.PodsPath, bed.Pod(fmt.Sprintf("many-%d", i), "busybox", bed.Polite...), nil)
	})
	if err != nil {
		return err
	}
	up := map[string]bool{}
	e, err := bed.Wait(ch, 2*time.Minute, func(e bed.Event) bool {
		if e.Object.Status.Phase == "Running" {
			up[e.Object.Metadata.Name] = true
		}
		return len(up) == atOnce
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods run: %w", len(up), atOnce, err)
	}
	took := e.At.Sub(began)
	r.Add(fmt.Sprintf("%d pods at once: all Running", atOnce), took.Seconds(), "s", "<= 1.8 s",
		fmt.Sprintf("%.1f ms each; bare, one by one, %.1f ms; posted at %.0f/s", bed.Ms(took)/atOnce, bed.Ms(bare.P(50)), rate))
	time.Sleep(time.Second)
	began = time.Now()
	if err := d.Do("DELETE", bed.PodsPath, nil, nil); err != nil {
		return err
	}
	gone := map[string]bool{}
	e, err = bed.Wait(ch, 2*time.Minute, func(e bed.Event) bool {
		if e.Type == "DELETED" {
			gone[e.Object.Metadata.Name] = true
		}
		return len(gone) == atOnce
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods are gone: %w", len(gone), atOnce, err)
	}
	r.Add(fmt.Sprintf("%d pods at once: all gone", atOnce), e.At.Sub(began).Seconds(), "s", "<= 0.8 s", "")
	return nil
}
