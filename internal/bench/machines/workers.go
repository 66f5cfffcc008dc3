package machines

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/bench/bed"
	"minik8s/internal/client"
	"minik8s/internal/hosts"
)

const joined = 5 // how often a worker is measured

// Workers measures a worker beside a master on another host: joining, starting again, and what it weighs.
func Workers(r *bed.Report) (err error) {
	binary, lab, err := newLab()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	m, err := lab.Add("m", 1)
	if err != nil {
		return err
	}
	w, err := lab.Add("w", 1)
	if err != nil {
		return err
	}
	// The worker's program is a file of its own: two daemons that share the pages of one weigh less than each does alone.
	w.Binary = filepath.Join(w.Dir(), "..", "minik8sd-w")
	// It is written in small pieces, as by cp: of a file that was written at once the kernel maps 2 MiB with each fault.
	if out, err := exec.Command("cp", binary, w.Binary).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := m.Start("--role=master,worker"); err != nil {
		return err
	}
	if err := poll(func() bool { return m.Ready(context.Background()) }); err != nil {
		return err
	}
	var line string
	if err := poll(func() bool { line, err = m.Ctl("token", "create", "--ttl=1h"); return err == nil }); err != nil {
		return err
	}
	flags := strings.Fields(line)[1:]
	joins, again, err := joinTimes(m, w, flags)
	if err != nil {
		return err
	}
	r.Add("worker: nothing to Ready, with joining, p50", bed.Ms(joins.P(50)), "ms", "<= 500 ms", "two certificates, the Node, its range")
	r.Add("  an earlier worker to Ready, p50", bed.Ms(again.P(50)), "ms", "<= 500 ms", "")
	if err := followNodes(r, m, w); err != nil {
		return err
	}
	time.Sleep(20 * time.Second) // until memory from the start has been returned
	pss, anon, n := bed.MemoryOf(w.Dir(), w.Pid())
	r.Add("worker alone, memory at idle (PSS)", pss/1024, "MiB", "<= 26 MiB", fmt.Sprintf("%d processes", n))
	r.Add("  anonymous", anon/1024, "MiB", "<= 14 MiB", "")
	return nil
}

// joinTimes measures from the start of the daemon until its Node is Ready: of a machine that was set up anew, and of one
// that had joined.
func joinTimes(m, w *hosts.Host, flags []string) (joins, again bed.Samples, err error) {
	c, err := m.API()
	if err != nil {
		return nil, nil, err
	}
	key := client.Key{Kind: api.Nodes, Name: w.Name}
	start := func() (time.Duration, error) {
		_, err := c.Delete(context.Background(), key, nil)
		if err != nil && !strings.Contains(err.Error(), "not found") {
			return 0, err
		}
		began := time.Now()
		if err := w.Start(flags...); err != nil {
			return 0, err
		}
		err = poll(func() bool {
			node, err := client.Get[*corev1.Node](context.Background(), c, key)
			return err == nil && nodeReady(node)
		})
		return time.Since(began), err
	}
	for i := range joined {
		if i > 0 {
			if err := w.Wipe(); err != nil {
				return nil, nil, err
			}
		}
		took, err := start()
		if err != nil {
			return nil, nil, err
		}
		if err := w.Signal(syscall.SIGKILL); err != nil {
			return nil, nil, err
		}
		joins = append(joins, took)
		if took, err = start(); err != nil {
			return nil, nil, err
		}
		again = append(again, took)
	}
	return joins, again, nil
}
