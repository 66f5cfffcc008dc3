package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/bench/bed"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
	"minik8s/internal/hosts"
	"minik8s/internal/membership"
)

const (
	readers   = 64              // that get at once
	readFor   = 3 * time.Second // from each master
	betweenOf = 2 * time.Second // a killed master's return and the next kill
)

// Masters measures three masters beside one: reads on one that follows, and what the loss of the leader costs, in
// so many kills.
func Masters(r *bed.Report, kills int) (err error) {
	_, lab, err := newLab()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	var all []*hosts.Host
	for _, name := range []string{"m1", "m2", "m3"} {
		h, err := lab.Add(name, 1)
		if err != nil {
			return err
		}
		all = append(all, h)
	}
	if err := all[0].Start("--role=master,worker"); err != nil {
		return err
	}
	if err := poll(func() bool { return all[0].Ready(context.Background()) }); err != nil {
		return err
	}
	alone, err := readRate(all[0])
	if err != nil {
		return err
	}
	var line string
	if err := poll(func() bool { line, err = all[0].Ctl("token", "create", "--role=master"); return err == nil }); err != nil {
		return err
	}
	var joins bed.Samples
	for _, h := range all[1:] {
		began := time.Now()
		if err := h.Start(strings.Fields(line)[1:]...); err != nil {
			return err
		}
		if err := poll(func() bool { return h.Ready(context.Background()) }); err != nil {
			return err
		}
		joins = append(joins, time.Since(began))
	}
	r.Add("master: nothing to Ready, joining another, mean of 2", bed.Ms((joins[0]+joins[1])/2), "ms", "", "the first restarts the other's etcd")
	if err := poll(func() bool { n, _, err := voters(all[0]); return err == nil && n == 3 }); err != nil {
		return err
	}
	follower, err := readRate(all[2])
	if err != nil {
		return err
	}
	r.Add("gets/s on a following master, of a single one's", follower/alone, "x", ">= 0.5", fmt.Sprintf("%.0f/s and %.0f/s, %d readers", follower, alone, readers))
	return leaderLost(r, all, kills)
}

// readRate is how many gets a second a master answers over its socket.
func readRate(h *hosts.Host) (float64, error) {
	c, err := h.API()
	if err != nil {
		return 0, err
	}
	key := client.Key{Kind: api.Namespaces, Name: "default"}
	var n atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, readers)
	began := time.Now()
	for range readers {
		wg.Go(func() {
			for time.Since(began) < readFor {
				if _, err := c.Get(context.Background(), key); err != nil {
					errs <- err
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	close(errs)
	return float64(n.Load()) / time.Since(began).Seconds(), <-errs
}

// voters is how many masters vote, and which leads, as a master says.
func voters(h *hosts.Host) (n int, leader string, err error) {
	c, err := h.API()
	if err != nil {
		return 0, "", err
	}
	resp, err := c.Do(context.Background(), http.MethodGet, membership.Path, nil, "", nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	var members membership.List
	if err := json.NewDecoder(resp.Body).Decode(&members); err != nil {
		return 0, "", err
	}
	for _, m := range members.Members {
		if m.Role != "learner" {
			n++
		}
		if m.Role == "leader" {
			leader = m.Name
		}
	}
	return n, leader, nil
}

// leaderLost kills the leader again and again, while another master is written to without a pause and a pod is created
// right after.
func leaderLost(r *bed.Report, all []*hosts.Host, kills int) error {
	var gaps, bound bed.Samples
	failed := 0
	for i := range kills {
		var leader string
		if err := poll(func() bool { _, name, err := voters(all[i%3]); leader = name; return err == nil && name != "" }); err != nil {
			return err
		}
		var dead, alive *hosts.Host
		for _, h := range all {
			if h.Name == leader {
				dead = h
			} else {
				alive = h
			}
		}
		gap, toBound, bad, err := killOnce(dead, alive, i)
		if err != nil {
			return err
		}
		gaps, bound, failed = append(gaps, gap), append(bound, toBound), failed+bad
		if err := dead.Start(); err != nil {
			return err
		}
		if err := poll(func() bool { return dead.Ready(context.Background()) }); err != nil {
			return err
		}
		time.Sleep(betweenOf)
	}
	why := fmt.Sprintf("%d kills of the leader; an election takes 0.4 to 0.8 s", len(gaps))
	r.Add("leader of three killed: gap in writes, p50", bed.Ms(gaps.P(50)), "ms", "<= 700 ms", why)
	r.Add(fmt.Sprintf("  worst of %d", len(gaps)), bed.Ms(gaps.P(100)), "ms", "<= 1500 ms", "asked for is the worst of 100: -kills=100")
	r.Add("  writes through another master that failed", float64(failed), "", "0", "")
	r.Add("  a pod created right after, to its node, p50", bed.Ms(bound.P(50)), "ms", "<= 2000 ms", "")
	r.Add("  worst", bed.Ms(bound.P(100)), "ms", "<= 2000 ms", "")
	return nil
}

// killOnce kills a leader. gap is the longest time between two writes that another master acknowledged, bound how long
// after the kill a pod had its node.
func killOnce(dead, alive *hosts.Host, i int) (gap, bound time.Duration, failed int, err error) {
	c, err := alive.API()
	if err != nil {
		return 0, 0, 0, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	type result struct {
		gap    time.Duration
		failed int
	}
	done := make(chan result)
	go func() {
		var out result
		last := time.Now()
		for n := 0; ctx.Err() == nil; n++ {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("gap-%d-%d", i, n)}}
			if _, err := c.Create(context.Background(), cm, client.WriteOptions{}); err != nil {
				out.failed++
				continue
			}
			out.gap = max(out.gap, time.Since(last))
			last = time.Now()
		}
		done <- out
	}()
	time.Sleep(200 * time.Millisecond) // of writes before
	killed := time.Now()
	if err := dead.Signal(syscall.SIGKILL); err != nil {
		return 0, 0, 0, err
	}
	bound, err = scheduled(c, fmt.Sprintf("gap-%d", i), killed)
	time.Sleep(time.Until(killed.Add(2 * time.Second)))
	stop()
	out := <-done
	return out.gap, bound, out.failed, err
}

// scheduled creates a pod and waits until it has a node. It needs no image: it is deleted before it could run.
func scheduled(c *remote.Client, name string, since time.Time) (time.Duration, error) {
	ctx := context.Background()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "minik8s/hello", ImagePullPolicy: corev1.PullNever}}}}
	key := client.Key{Kind: api.Pods, Namespace: "default", Name: name}
	if err := poll(func() bool { _, err := c.Create(ctx, pod, client.WriteOptions{}); return err == nil }); err != nil {
		return 0, err
	}
	err := poll(func() bool {
		p, err := client.Get[*corev1.Pod](ctx, c, key)
		return err == nil && p.Spec.NodeName != ""
	})
	took := time.Since(since)
	_, derr := c.Delete(ctx, key, &metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	return took, errors.Join(err, derr)
}
