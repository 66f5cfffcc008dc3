package hostports

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan/plantest"
)

// notes is the API as far as Of writes to it: a pod's annotations.
type notes struct {
	client.Interface
	t       *testing.T
	written []map[string]string
}

func (n *notes) Patch(_ context.Context, _ client.Key, p client.Patch, _ client.WriteOptions) (api.Object, error) {
	var sent struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(p.Data, &sent); err != nil {
		n.t.Error(err)
	}
	n.written = append(n.written, sent.Metadata.Annotations)
	return nil, nil
}

// Random ports are written down once, are kept by a kubelet that starts again, and belong to one pod.
func TestRandomPortsAreKept(t *testing.T) {
	ports := func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP, HostPort: 5353}}
	}
	wanted := plantest.Pod("web", ports, func(p *corev1.Pod) { p.Annotations = map[string]string{RandomAnnotation: "true"} })
	api := &notes{t: t}
	m := New(api, false)
	first, err := m.Of(t.Context(), wanted)
	if err != nil || len(first) != 2 || first[0].HostPort == 0 || first[1].HostPort != 5353 || len(api.written) != 1 {
		t.Fatalf("%+v, %v, written: %v", first, err, api.written)
	}
	if owner := m.picked[first[0].HostPort]; owner != wanted.UID {
		t.Errorf("port %d belongs to %q", first[0].HostPort, owner)
	}
	maps.Copy(wanted.Annotations, api.written[0])
	again, err := New(api, false).Of(t.Context(), wanted)
	if err != nil || len(again) != 2 || again[0] != first[0] || len(api.written) != 1 {
		t.Errorf("after a restart: %+v, %v, written: %v; had %+v", again, err, api.written, first)
	}
	m.Free(wanted.UID)
	if len(m.picked) != 0 {
		t.Errorf("still taken: %v", m.picked)
	}

	plain := plantest.Pod("plain", ports)
	if got, err := m.Of(t.Context(), plain); err != nil || len(got) != 1 {
		t.Errorf("without the annotation: %+v, %v", got, err)
	}
	if got, err := New(api, true).Of(t.Context(), plain); err != nil || len(got) != 2 {
		t.Errorf("where the daemon's setting asks for them: %+v, %v", got, err)
	}
	plain.Spec.HostNetwork = true
	if got, err := New(api, true).Of(t.Context(), plain); err != nil || len(got) != 0 {
		t.Errorf("on the host's network: %+v, %v", got, err)
	}
}

func TestParse(t *testing.T) {
	got := parse("80:40123/TCP,9000:40124/UDP,nonsense,1:x/TCP")
	if want := map[string]int32{"80/TCP": 40123, "9000/UDP": 40124}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
