package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/bench/bed"
	"minik8s/internal/client"
	"minik8s/internal/hosts"
)

const electionWriters = 32

// Elections counts how often another master leads although none was lost, while three masters have as many writes and reads
// as they take for as long as loaded says. It also measures what they cost at rest.
func Elections(r *bed.Report, loaded time.Duration) (err error) {
	_, lab, err := newLab()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	all, err := threeMasters(lab)
	if err != nil {
		return err
	}
	time.Sleep(5 * time.Second) // after the start
	before, began := cpuOf(all), time.Now()
	time.Sleep(10 * time.Second)
	r.Add("three masters: CPU at rest, each", 100*(cpuOf(all)-before)/time.Since(began).Seconds()/3, "%", "", "of a core; ticks of Raft every 50 ms")
	changes, writes, failed, err := underLoad(all, loaded)
	if err != nil {
		return err
	}
	r.Add(fmt.Sprintf("changes of the leader in %s of full load", loaded), float64(changes), "", "0", "asked for is an hour: -for=1h")
	r.Add("  writes meanwhile", float64(writes)/loaded.Seconds(), "/s", "", fmt.Sprintf("%d clients, %d writes failed", electionWriters, failed))
	return nil
}

// threeMasters starts three masters that all vote.
func threeMasters(lab *hosts.Lab) (all []*hosts.Host, err error) {
	for _, name := range []string{"m1", "m2", "m3"} {
		h, err := lab.Add(name, 1)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	flags := []string{"--role=master,worker"}
	for i, h := range all {
		if err := h.Start(flags...); err != nil {
			return nil, err
		}
		if err := poll(func() bool { return h.Ready(context.Background()) }); err != nil {
			return nil, err
		}
		if i == 0 {
			var line string
			if err := poll(func() bool { line, err = h.Ctl("token", "create", "--role=master"); return err == nil }); err != nil {
				return nil, err
			}
			flags = strings.Fields(line)[1:]
		}
	}
	return all, poll(func() bool { n, _, err := voters(all[0]); return err == nil && n == 3 })
}

// cpuOf is the processor time in seconds that the daemons and their processes have used.
func cpuOf(all []*hosts.Host) (sum float64) {
	for _, h := range all {
		sum += bed.CPUOf(h.Dir(), h.Pid())
	}
	return sum
}

// underLoad writes and reads through all masters, and counts how often another one leads.
func underLoad(all []*hosts.Host, loaded time.Duration) (changes int, writes, failed int64, err error) {
	ctx, stop := context.WithTimeout(context.Background(), loaded)
	defer stop()
	var done, bad atomic.Int64
	var wg sync.WaitGroup
	for i := range electionWriters {
		c, err := all[i%3].API()
		if err != nil {
			return 0, 0, 0, err
		}
		wg.Go(func() {
			name := fmt.Sprintf("load-%d", i)
			for n := 0; ctx.Err() == nil; n++ {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"n": fmt.Sprint(n)}}
				_, err := c.Update(ctx, cm, client.WriteOptions{})
				if n == 0 {
					_, err = c.Create(ctx, cm, client.WriteOptions{})
				}
				if err == nil {
					_, err = c.Get(ctx, client.KeyOf(cm))
				}
				if err != nil && ctx.Err() == nil {
					bad.Add(1)
				}
				done.Add(1)
			}
		})
	}
	last := ""
	for ctx.Err() == nil {
		_, leader, err := voters(all[0])
		if err == nil && leader != "" {
			if last != "" && leader != last {
				changes++
			}
			last = leader
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	wg.Wait()
	return changes, done.Load(), bad.Load(), nil
}
