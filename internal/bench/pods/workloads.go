package pods

import (
	"context"
	"fmt"
	"time"

	"minik8s/internal/bench/bed"
)

const setSize = 50

// Workloads measures a ReplicaSet of real pods that is scaled up and down.
func Workloads(r *bed.Report) error {
	return bed.WithDaemon(true, func(d *bed.Daemon) error { return setUpAndDown(r, d) })
}

func setUpAndDown(r *bed.Report, d *bed.Daemon) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch, err := bed.Watch(ctx, d.HTTP, "http://minik8s"+bed.PodsPath+"?watch=1")
	if err != nil {
		return err
	}
	const path = "/apis/apps/v1/namespaces/default/replicasets"
	labels := m{"app": "set"}
	spec := bed.Pod("x", "busybox", bed.Polite...)["spec"]
	set := m{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": m{"name": "set"},
		"spec": m{"replicas": setSize, "selector": m{"matchLabels": labels}, "template": m{"metadata": m{"labels": labels}, "spec": spec}}}
	began := time.Now()
	if err := d.Do("POST", path, set, nil); err != nil {
		return err
	}
	bound, running := map[string]bool{}, map[string]bool{}
	var scheduled, first time.Duration
	e, err := bed.Wait(ch, 2*time.Minute, func(e bed.Event) bool {
		name := e.Object.Metadata.Name
		if e.Object.Spec.NodeName != "" && !bound[name] {
			bound[name] = true
			scheduled = e.At.Sub(began)
		}
		if e.Object.Status.Phase == "Running" {
			running[name] = true
			if first == 0 {
				first = e.At.Sub(began)
			}
		}
		return len(running) == setSize
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods run: %w", len(running), setSize, err)
	}
	up := e.At.Sub(began)
	time.Sleep(time.Second)
	began = time.Now()
	set["spec"].(m)["replicas"] = 0
	if err := d.Do("PUT", path+"/set", set, nil); err != nil {
		return err
	}
	gone := map[string]bool{}
	e, err = bed.Wait(ch, 2*time.Minute, func(e bed.Event) bool {
		if e.Type == "DELETED" {
			gone[e.Object.Metadata.Name] = true
		}
		return len(gone) == setSize
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods are gone: %w", len(gone), setSize, err)
	}
	r.Add(fmt.Sprintf("ReplicaSet 0 to %d, all Running", setSize), up.Seconds(), "s", "<= 0.9 s", fmt.Sprintf("%.1f ms each", bed.Ms(up)/setSize))
	r.Add("  the first of them Running", bed.Ms(first), "ms", "<= 60 ms", "")
	r.Add(fmt.Sprintf("ReplicaSet 0 to %d, created and scheduled", setSize), bed.Ms(scheduled), "ms", "<= 100 ms", fmt.Sprintf("%d writes", 2*setSize))
	r.Add(fmt.Sprintf("ReplicaSet %d to 0, all gone", setSize), e.At.Sub(began).Seconds(), "s", "<= 1.5 s", "")
	return nil
}
