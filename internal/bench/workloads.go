package main

import (
	"context"
	"fmt"
	"time"
)

const setSize = 50

// workloads measures a ReplicaSet of real pods that is scaled up and down.
func workloads(r *report) error {
	return withDaemon(true, func(d *daemon) error { return setUpAndDown(r, d) })
}

func setUpAndDown(r *report, d *daemon) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch, err := watch(ctx, d.http, "http://minik8s"+podsPath+"?watch=1")
	if err != nil {
		return err
	}
	const path = "/apis/apps/v1/namespaces/default/replicasets"
	labels := m{"app": "set"}
	spec := pod("x", "busybox", polite...)["spec"]
	set := m{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": m{"name": "set"},
		"spec": m{"replicas": setSize, "selector": m{"matchLabels": labels}, "template": m{"metadata": m{"labels": labels}, "spec": spec}}}
	began := time.Now()
	if err := d.do("POST", path, set, nil); err != nil {
		return err
	}
	bound, running := map[string]bool{}, map[string]bool{}
	var scheduled, first time.Duration
	e, err := wait(ch, 2*time.Minute, func(e seen) bool {
		name := e.Object.Metadata.Name
		if e.Object.Spec.NodeName != "" && !bound[name] {
			bound[name] = true
			scheduled = e.at.Sub(began)
		}
		if e.Object.Status.Phase == "Running" {
			running[name] = true
			if first == 0 {
				first = e.at.Sub(began)
			}
		}
		return len(running) == setSize
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods run: %w", len(running), setSize, err)
	}
	up := e.at.Sub(began)
	time.Sleep(time.Second)
	began = time.Now()
	set["spec"].(m)["replicas"] = 0
	if err := d.do("PUT", path+"/set", set, nil); err != nil {
		return err
	}
	gone := map[string]bool{}
	e, err = wait(ch, 2*time.Minute, func(e seen) bool {
		if e.Type == "DELETED" {
			gone[e.Object.Metadata.Name] = true
		}
		return len(gone) == setSize
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods are gone: %w", len(gone), setSize, err)
	}
	r.add(fmt.Sprintf("ReplicaSet 0 to %d, all Running", setSize), up.Seconds(), "s", "<= 0.9 s", fmt.Sprintf("%.1f ms each", ms(up)/setSize))
	r.add("  the first of them Running", ms(first), "ms", "<= 60 ms", "")
	r.add(fmt.Sprintf("ReplicaSet 0 to %d, created and scheduled", setSize), ms(scheduled), "ms", "<= 100 ms", fmt.Sprintf("%d writes", 2*setSize))
	r.add(fmt.Sprintf("ReplicaSet %d to 0, all gone", setSize), e.at.Sub(began).Seconds(), "s", "<= 1.5 s", "")
	return nil
}
