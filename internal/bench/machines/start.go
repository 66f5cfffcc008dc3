package machines

import (
	"fmt"
	"os"
	"time"

	"minik8s/internal/bench/bed"
)

// Start measures the time from exec on an empty directory until the node is Ready, and until a pod has a node.
func Start(r *bed.Report) error {
	var nodes, scheduled bed.Samples
	for range 5 {
		n, s, err := startOnce()
		if err != nil {
			return err
		}
		nodes, scheduled = append(nodes, n), append(scheduled, s)
	}
	bound := "etcd's first start: fsyncs and an election"
	r.Add("empty directory to node Ready, p50", bed.Ms(nodes.P(50)), "ms", "<= 600 ms", bound)
	r.Add("empty directory to a pod scheduled, p50", bed.Ms(scheduled.P(50)), "ms", "<= 600 ms", bound)
	return nil
}

func startOnce() (node, scheduled time.Duration, err error) {
	d, err := bed.StartDaemon(false)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if serr := d.Stop(); err == nil {
			err = serr
		}
	}()
	err = d.Until(30*time.Second, func() bool {
		var list struct {
			Items []struct {
				Status struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		if d.Do("GET", "/api/v1/nodes", nil, &list) != nil {
			return false
		}
		for _, n := range list.Items {
			for _, c := range n.Status.Conditions {
				if c.Type == "Ready" && c.Status == "True" {
					return true
				}
			}
		}
		return false
	})
	node = time.Since(d.Began)
	if err != nil {
		return 0, 0, err
	}
	posted := false
	err = d.Until(30*time.Second, func() bool {
		if !posted {
			posted = d.Do("POST", bed.PodsPath, bed.Pod("first", "busybox", "true"), nil) == nil
			return false
		}
		var p struct{ Spec struct{ NodeName string } }
		return d.Do("GET", bed.PodsPath+"/first", nil, &p) == nil && p.Spec.NodeName != ""
	})
	return node, time.Since(d.Began), err
}

// Idle measures what the daemon and all its processes use with nothing to do.
func Idle(r *bed.Report) error {
	d, err := bed.StartDaemon(true)
	if err != nil {
		return err
	}
	err = d.Ready()
	if err == nil {
		time.Sleep(20 * time.Second) // until memory from the start has been returned
		pss, anon, n := bed.Memory(d)
		r.Add("memory at idle (PSS of everything)", pss/1024, "MiB", "<= 48 MiB", fmt.Sprintf("%d processes", n))
		r.Add("memory at idle, anonymous", anon/1024, "MiB", "<= 32 MiB", "Go's heap of etcd, containerd and us")
		const window = 30 * time.Second
		before := bed.CPU(d)
		time.Sleep(window)
		used := bed.CPU(d) - before
		r.Add("CPU at idle", 100*used/window.Seconds(), "%", "<= 0.5 %", "of a core; clock ticks of 10 ms")
		err = d.Apply(bed.ConfigMapsPath+"/applied", map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "applied"}, "data": map[string]any{"k": "v"}})
	}
	if err == nil {
		time.Sleep(140 * time.Second) // until the collection that the runtime wants after two minutes has returned memory
		pss, anon, _ := bed.Memory(d)
		r.Add("memory at idle after a server-side apply", pss/1024, "MiB", "<= 42 MiB",
			fmt.Sprintf("%.1f MiB anonymous; the schema of all kinds is read with the first", anon/1024))
	}
	if serr := d.Stop(); err == nil {
		err = serr
	}
	return err
}

// Size is that of the built file.
func Size(r *bed.Report) error {
	st, err := os.Stat(bed.Binary)
	if err != nil {
		return fmt.Errorf("%w: run make build first", err)
	}
	r.Add("size of the one file", float64(st.Size())/1e6, "MB", "<= 80 MB", "everything linked: etcd, containerd, runc, the keeper")
	return nil
}
