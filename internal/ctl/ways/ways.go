package ways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/proxy/report"
)

// Patience is how long one node may take to answer.
const Patience = 4 * time.Second

// atOnce is how many nodes are asked at the same time.
const atOnce = 32

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 8 << 20

// API is what is needed of the API's client.
type API interface {
	// Do makes a request; the answer's body is to be closed. Refusals are errors.
	Do(ctx context.Context, method, path string, query url.Values, contentType string, body io.Reader) (*http.Response, error)
}

// ask asks a node's kubelet, by the API.
func ask(ctx context.Context, api API, method, node, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	resp, err := api.Do(ctx, method, "/api/v1/nodes/"+url.PathEscape(node)+"/proxy"+path, query, "", nil)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it has not answered within %s", Patience)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("its answer cannot be read: %w", err)
	}
	return nil
}

// Service asks a node what it does with connections to a Service; from is a pod of the node, or invalid for all callers.
func Service(ctx context.Context, api API, node, namespace, name string, from netip.Addr) (out report.Service, err error) {
	query := url.Values{}
	if from.IsValid() {
		query.Set("from", from.String())
	}
	err = ask(ctx, api, http.MethodGet, node, report.Services+url.PathEscape(namespace)+"/"+url.PathEscape(name), query, &out)
	return out, err
}

// Dial has a TCP connection from within a pod tried.
func Dial(ctx context.Context, api API, pod *corev1.Pod, to netip.AddrPort) (out report.Attempt, err error) {
	err = ask(ctx, api, http.MethodPost, pod.Spec.NodeName, report.Dials+pod.Namespace+"/"+pod.Name,
		url.Values{"network": {"tcp"}, "address": {to.String()}}, &out)
	return out, err
}

// Lookup has a DNS server asked for a name from within a pod.
func Lookup(ctx context.Context, api API, pod *corev1.Pod, name string, server netip.AddrPort) (out report.Attempt, err error) {
	err = ask(ctx, api, http.MethodPost, pod.Spec.NodeName, report.Lookups+pod.Namespace+"/"+pod.Name,
		url.Values{"name": {name}, "address": {server.String()}}, &out)
	return out, err
}

// OfNode is what a node says, or why it says nothing.
type OfNode struct {
	report.Service
	Err error
}

// OfNodes asks all nodes what they do with a Service; the answers are in the order of the nodes. mute are those that cannot
// be asked because they have no kubelet: masters without pods.
func OfNodes(ctx context.Context, api API, nodes []*corev1.Node, namespace, name string) (all []OfNode, mute []string) {
	var asked []*corev1.Node
	for _, n := range nodes {
		if n.Status.DaemonEndpoints.KubeletEndpoint.Port != 0 {
			asked = append(asked, n)
		} else {
			mute = append(mute, n.Name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*Patience) // for all: many may be away
	defer cancel()
	out := make([]OfNode, len(asked))
	places := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, n := range asked {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			out[i].Service, out[i].Err = Service(ctx, api, n.Name, namespace, name, netip.Addr{})
			out[i].Node = n.Name
		})
	}
	wg.Wait()
	return out, mute
}
