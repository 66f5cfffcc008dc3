package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// scheme is of URLs that lead to nodes: minik8s-node://COLLECTOR/NODE/PATH. cAdvisor's client knows only
// http.DefaultClient, which has neither a certificate nor a time-out. Its transport takes schemes of others, though.
const scheme = "minik8s-node"

const (
	// answerTime bounds an answer, which waits for a sample for a second at most.
	answerTime = 3 * time.Second
	// maxAnswer bounds an answer in bytes; a container takes some 2,000.
	maxAnswer = 64 << 20
	// atOnce is how many answers are read at a time, since each takes memory. Nodes that do not answer take no part of it, so
	// that any number of them holds nobody up.
	atOnce = 16
)

// ways are the collectors of this process. Only tests have more than one.
var ways = struct {
	sync.Once
	sync.Mutex
	next int
	of   map[string]way
}{of: map[string]way{}}

// way is how a collector reaches its nodes, and the places for those answers that are being read.
type way struct {
	http.RoundTripper
	places chan struct{}
}

// register makes the requests to a base URL go by a transport; the node's name follows the URL.
func register(rt http.RoundTripper) (base string, forget func()) {
	ways.Do(func() {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			t.RegisterProtocol(scheme, dispatcher{})
		}
	})
	ways.Lock()
	defer ways.Unlock()
	ways.next++
	id := strconv.Itoa(ways.next)
	ways.of[id] = way{rt, make(chan struct{}, atOnce)}
	return scheme + "://" + id + "/", func() {
		ways.Lock()
		defer ways.Unlock()
		delete(ways.of, id)
	}
}

// dispatcher passes a request on to its collector's transport.
type dispatcher struct{}

// RoundTrip implements http.RoundTripper. The whole body is read here, so that the time-out bounds it too.
func (dispatcher) RoundTrip(req *http.Request) (*http.Response, error) {
	ways.Lock()
	w, ok := ways.of[req.URL.Host]
	ways.Unlock()
	if !ok {
		return nil, errors.New("this collector has ended")
	}
	ctx, cancel := context.WithTimeout(req.Context(), answerTime)
	defer cancel()
	resp, err := w.RoundTripper.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		// A client would follow it to where no time-out holds, or with this machine's certificate to another kubelet.
		return nil, fmt.Errorf("it leads elsewhere: %s", resp.Status)
	}
	select {
	case w.places <- struct{}{}:
		defer func() { <-w.places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// toNodes sends the requests of a collector to kubelets, or to the cAdvisors beside them.
type toNodes struct {
	kubelets http.RoundTripper
	cadvisor string // see Config
	address  func(ctx context.Context, node string) (string, error)
}

// RoundTrip implements http.RoundTripper.
func (t toNodes) RoundTrip(req *http.Request) (*http.Response, error) {
	node, rest, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	out := req.Clone(req.Context())
	if t.cadvisor == "" {
		out.URL = &url.URL{Scheme: "https", Host: node, Path: "/" + rest, RawQuery: req.URL.RawQuery}
		out.Host = ""
		return t.kubelets.RoundTrip(out)
	}
	address, err := t.address(req.Context(), node)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(strings.ReplaceAll(t.cadvisor, NodePlace, hostOf(address)))
	if err != nil {
		return nil, err
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + "/" + rest
	base.RawQuery = req.URL.RawQuery
	out.URL, out.Host = base, ""
	return plain.RoundTrip(out)
}

// NodePlace stands for a node's address in Config.CAdvisor.
const NodePlace = "{node}"

// hostOf has an IPv6 address in brackets, as URLs do.
func hostOf(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

// plain leads to cAdvisors. It is not the default transport, which the request came through.
var plain = &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}
