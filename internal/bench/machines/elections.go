package machines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
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

// Elections counts how often the masters elect a leader although none was lost, while three masters have as many writes and reads
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
	seen, err := elected(all)
	if err != nil {
		return err
	}
	writes, failed, err := underLoad(all, loaded)
	if err != nil {
		return err
	}
	now, err := elected(all)
	if err != nil {
		return err
	}
	r.Add(fmt.Sprintf("elections in %s of full load", loaded), now-seen, "", "0",
		"as the masters have seen them, those too that the leader has won again; asked for is an hour: -for=1h")
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

// electionsSeen is etcd's count of how often a member saw that there is a leader where there was none, or another one.
const electionsSeen = "etcd_server_leader_changes_seen_total "

// elected is how many elections the masters have seen: the most that one of them has.
func elected(all []*hosts.Host) (most float64, err error) {
	for _, h := range all {
		c, err := h.API()
		if err != nil {
			return 0, err
		}
		resp, err := c.Do(context.Background(), http.MethodGet, "/metrics", nil, "", nil)
		if err != nil {
			return 0, err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close() //nolint:errcheck // it was read
		if err != nil {
			return 0, err
		}
		_, after, found := strings.Cut(string(text), "\n"+electionsSeen)
		line, _, _ := strings.Cut(after, "\n")
		n, err := strconv.ParseFloat(line, 64)
		if !found || err != nil {
			return 0, fmt.Errorf("%s says nothing of %s: %w", h.Name, electionsSeen, err)
		}
		most = max(most, n)
	}
	return most, nil
}

// underLoad writes and reads through all masters.
func underLoad(all []*hosts.Host, loaded time.Duration) (writes, failed int64, err error) {
	ctx, stop := context.WithTimeout(context.Background(), loaded)
	defer stop()
	var done, bad atomic.Int64
	var wg sync.WaitGroup
	for i := range electionWriters {
		c, err := all[i%3].API()
		if err != nil {
			return 0, 0, err
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
	wg.Wait()
	return done.Load(), bad.Load(), nil
}
