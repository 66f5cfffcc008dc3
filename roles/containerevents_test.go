package roles_test

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"testing"

	cadvisor1 "github.com/google/cadvisor/client"
	v1 "github.com/google/cadvisor/info/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// A container that begins, runs out of memory, and ends is told to who follows the events of its node, and to cAdvisor's client
// afterwards, as cAdvisor tells it: with the process that the kernel has ended.
func TestContainerEvents(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	p.create(c, shell("first", forever))
	node := p.running(c, "first").Spec.NodeName
	daemon, err := built()
	if err != nil {
		t.Fatal(err)
	}
	kubelet := "http://" + serving(t, "Starting to serve", daemon, "ctl", "--data-dir", p.dir, "proxy", "--port=0") + "/api/v1/nodes/" + node + "/proxy/"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, kubelet+"api/v1.3/events?all_events=true&subcontainers=true&stream=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req) // it has answered: what happens from now on is sent
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	greedy := shell("greedy", "tail /dev/zero")
	greedy.Spec.RestartPolicy = corev1.RestartPolicyNever
	greedy.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")}
	p.create(c, greedy)
	uid := string(p.pod(c, "greedy").UID)

	kinds := []v1.EventType{v1.EventContainerCreation, v1.EventOom, v1.EventOomKill, v1.EventContainerDeletion}
	told := map[v1.EventType]v1.Event{}
	for stream := json.NewDecoder(resp.Body); len(told) < len(kinds); {
		var e v1.Event
		if err := stream.Decode(&e); err != nil {
			t.Fatalf("%v; until then there were %v", err, told)
		}
		if _, again := told[e.EventType]; again && e.EventType != v1.EventOom && e.EventType != v1.EventOomKill || !strings.Contains(e.ContainerName, uid) {
			t.Errorf("of pod %s there is %+v, after %v", uid, e, told)
		}
		told[e.EventType] = e
	}
	if k := told[v1.EventOomKill].EventData.OomKill; k == nil || k.Pid == 0 || k.ProcessName != "tail" {
		t.Errorf("%+v", k)
	}
	name := told[v1.EventContainerCreation].ContainerName
	if name != told[v1.EventContainerDeletion].ContainerName || name != told[v1.EventOom].ContainerName {
		t.Errorf("%v", told)
	}

	if _, err := c.Delete(t.Context(), client.Key{Kind: api.Pods, Namespace: "default", Name: "greedy"}, nil); err != nil {
		t.Fatal(err)
	}
	past := func(r *cadvisor1.Client) map[v1.EventType]*v1.Event {
		t.Helper()
		list, err := r.EventStaticInfo(strings.TrimPrefix(path.Dir(name), "/") + "?all_events=true&subcontainers=true") // the pod's
		if err != nil {
			t.Fatal(err)
		}
		out := map[v1.EventType]*v1.Event{}
		for _, e := range list {
			out[e.EventType] = e
		}
		return out
	}
	r := newReaders(t, kubelet).v1
	for _, kind := range kinds {
		want := told[kind]
		if got := past(r)[kind]; got == nil || !got.Timestamp.Equal(want.Timestamp) {
			t.Errorf("%s: %+v, was told %+v", kind, got, want)
		}
	}
}
