package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// seen is an event of a watch, with the time when it arrived.
type seen struct {
	at   time.Time
	Type string `json:"type"`
	// Object has the fields that the bench reads of a pod, node or ConfigMap.
	Object struct {
		Metadata struct {
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
		Status struct {
			Phase string `json:"phase"`
		} `json:"status"`
	} `json:"object"`
}

// watch opens a watch and sends its events until ctx ends.
func watch(ctx context.Context, c *http.Client, url string) (<-chan seen, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New("watch: " + resp.Status)
	}
	out := make(chan seen, 4096)
	go func() {
		defer close(out)
		defer resp.Body.Close() //nolint:errcheck // it was only read
		r := bufio.NewReaderSize(resp.Body, 1<<20)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			e := seen{at: time.Now()}
			if json.Unmarshal(line, &e) == nil {
				out <- e
			}
		}
	}()
	return out, nil
}

// wait reads events until ok returns true, and returns that event. It fails after limit.
func wait(ch <-chan seen, limit time.Duration, ok func(seen) bool) (seen, error) {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		select {
		case e, open := <-ch:
			if !open {
				return seen{}, errors.New("the watch ended")
			}
			if ok(e) {
				return e, nil
			}
		case <-t.C:
			return seen{}, errors.New("what was waited for did not come")
		}
	}
}
