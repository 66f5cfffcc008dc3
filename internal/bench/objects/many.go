package objects

import (
	"context"
	"fmt"
	"time"

	"minik8s/internal/bench/bed"
)

// hollowNodeJSON is a Node without a machine: it is Ready and has room for pods.
func hollowNodeJSON(name string) m {
	room := m{"cpu": "32", "memory": "128Gi", "pods": "110"}
	return m{"apiVersion": "v1", "kind": "Node",
		"metadata": m{"name": name, "labels": m{"kubernetes.io/hostname": name}},
		"status": m{"capacity": room, "allocatable": room,
			"conditions": []m{{"type": "Ready", "status": "True", "reason": "Hollow", "message": "it has no machine"}}}}
}

// Many measures pods that are created, bound and watched through the API and etcd on nodes without machines. Then
// it measures the master's memory with many of both.
func Many(r *bed.Report) (err error) {
	// A range for each of 5,000 nodes, which have no machines: that none of them says anything is not measured here.
	d, err := bed.StartDaemon(false, "--role=master", "--cluster-cidr=10.128.0.0/10", "--node-grace-period=1h", "--node-removal-period=0")
	if err != nil {
		return err
	}
	defer func() {
		if serr := d.Stop(); err == nil {
			err = serr
		}
	}()
	if err := d.Ready(); err != nil {
		return err
	}
	if err := nodes(d, 0, 500); err != nil {
		return err
	}
	took, err := fill(d, "few", 5000)
	if err != nil {
		return err
	}
	r.Add("create, bind, watched: 5,000 pods on 500 nodes", 5000/took.Seconds(), "/s", ">= 8,000/s", "two synced writes a pod, at 16 connections")
	if err := nodes(d, 500, 5000); err != nil {
		return err
	}
	if took, err = fill(d, "many", 45000); err != nil {
		return err
	}
	pss, anon, _ := bed.Memory(d)
	r.Add("memory of the master in a burst, 5,000 nodes and 50,000 pods", pss/1024, "MiB", "", fmt.Sprintf("%.0f MiB anonymous; the last 45,000 pods at %.0f/s", anon/1024, 45000/took.Seconds()))
	time.Sleep(40 * time.Second) // until what the burst needed is given back
	pss, anon, _ = bed.Memory(d)
	r.Add("  and at rest", pss/1024, "MiB", "<= 300 MiB", fmt.Sprintf("%.0f MiB anonymous", anon/1024))
	return nil
}

// nodes creates nodes without machines, and their status.
func nodes(d *bed.Daemon, from, to int) error {
	_, _, err := bed.Hammer(to-from, func(i int) error {
		name := fmt.Sprintf("hollow-%d", from+i)
		if err := d.Do("POST", "/api/v1/nodes", hollowNodeJSON(name), nil); err != nil {
			return err
		}
		return d.Do("PUT", "/api/v1/nodes/"+name+"/status", hollowNodeJSON(name), nil)
	})
	return err
}

// fill creates pods and waits until a watch has shown each of them with a node.
func fill(d *bed.Daemon, prefix string, n int) (time.Duration, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := d.Do("GET", bed.PodsPath+"?limit=1", nil, &list); err != nil {
		return 0, err
	}
	ch, err := bed.Watch(ctx, d.HTTP, "http://minik8s"+bed.PodsPath+"?watch=1&resourceVersion="+list.Metadata.ResourceVersion)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	failed := make(chan error, 1)
	go func() {
		_, _, err := bed.Hammer(n, func(i int) error {
			return d.Do("POST", bed.PodsPath, bed.Pod(fmt.Sprintf("%s-%d", prefix, i), "busybox"), nil)
		})
		failed <- err
	}()
	bound := map[string]bool{}
	e, err := bed.Wait(ch, 5*time.Minute, func(e bed.Event) bool {
		if e.Object.Spec.NodeName != "" {
			bound[e.Object.Metadata.Name] = true
		}
		return len(bound) == n
	})
	if err != nil {
		return 0, fmt.Errorf("%d of %d pods have a node: %w", len(bound), n, err)
	}
	return e.At.Sub(began), <-failed
}
