package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"minik8s/internal/hosts"
)

// patience is how long the client waits for an answer.
const patience = 5 * time.Second

// asker asks a Service as often as it is told to, whether earlier requests were answered or not, each on a connection of its
// own: only new connections are distributed.
type asker struct {
	service string // its URL
	client  http.Client
	rate    atomic.Int64 // a second
	work    atomic.Int64 // nanoseconds a request
	done    sync.WaitGroup
}

func newAsker(from *hosts.Host, address string) *asker {
	dial := &http.Transport{DisableKeepAlives: true}
	dial.DialContext = func(ctx context.Context, _, to string) (net.Conn, error) { return from.Dial(ctx, to) }
	return &asker{service: "http://" + address + "/", client: http.Client{Transport: dial, Timeout: patience}}
}

// ask has it ask so often a second, and for so much work, from its next request on.
func (a *asker) ask(rate int, work time.Duration) {
	a.rate.Store(int64(rate))
	a.work.Store(int64(work))
}

// run asks until the context ends, and then waits for answers to what was asked.
func (a *asker) run(ctx context.Context, answered func(began time.Time, pod string, err error)) {
	defer a.done.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		a.done.Go(func() {
			began := time.Now()
			pod, err := a.request(context.WithoutCancel(ctx))
			answered(began, pod, err)
		})
		next = next.Add(time.Second / time.Duration(a.rate.Load()))
		timer.Reset(time.Until(next))
	}
}

// request is one; the answer is the name of the pod.
func (a *asker) request(ctx context.Context) (string, error) {
	return a.get(ctx, "?work="+time.Duration(a.work.Load()).String())
}

// get asks whichever pod is the Service's next one for what is at a path below its root.
func (a *asker) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.service+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("answered with %s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return strings.TrimSpace(string(body)), nil
}
