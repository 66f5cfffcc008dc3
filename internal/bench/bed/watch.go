package bed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Event is an event of a watch, with the time when it arrived.
type Event struct {
	At   time.Time `json:"-"`
	Type string    `json:"type"`
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

// Watch opens a watch and sends its events until ctx ends.
func Watch(ctx context.Context, c *http.Client, url string) (<-chan Event, error) {
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
	out := make(chan Event, 4096)
	go func() {
		defer close(out)
		defer resp.Body.Close() //nolint:errcheck // it was only read
		r := bufio.NewReaderSize(resp.Body, 1<<20)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			e := Event{At: time.Now()}
			if json.Unmarshal(line, &e) == nil {
				out <- e
			}
		}
	}()
	return out, nil
}

// Wait reads events until ok returns true, and returns that event. It fails after limit.
func Wait(ch <-chan Event, limit time.Duration, ok func(Event) bool) (Event, error) {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		select {
		case e, open := <-ch:
			if !open {
				return Event{}, errors.New("the watch ended")
			}
			if ok(e) {
				return e, nil
			}
		case <-t.C:
			return Event{}, errors.New("what was waited for did not come")
		}
	}
}
