package services

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/client/local"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

func service(namespace, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}, Ports: ports}}
}

func lines(vars []cri.EnvVar) []string {
	var out []string
	for _, v := range vars {
		out = append(out, v.Name+"="+v.Value)
	}
	return out
}

// The variables of a Service, as Kubernetes' documentation has them (Accessing Services, "environment variables").
func TestVariables(t *testing.T) {
	got := lines(variables(service("default", "redis-primary", "10.0.0.11", corev1.ServicePort{Port: 6379, Protocol: corev1.ProtocolTCP})))
	want := []string{
		"REDIS_PRIMARY_SERVICE_HOST=10.0.0.11", "REDIS_PRIMARY_SERVICE_PORT=6379", "REDIS_PRIMARY_PORT=tcp://10.0.0.11:6379",
		"REDIS_PRIMARY_PORT_6379_TCP=tcp://10.0.0.11:6379", "REDIS_PRIMARY_PORT_6379_TCP_PROTO=tcp",
		"REDIS_PRIMARY_PORT_6379_TCP_PORT=6379", "REDIS_PRIMARY_PORT_6379_TCP_ADDR=10.0.0.11",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	named := lines(variables(service("default", "a", "10.0.0.1", corev1.ServicePort{Name: "web-1", Port: 80}, corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP})))
	for _, want := range []string{"A_SERVICE_PORT_WEB_1=80", "A_SERVICE_PORT_DNS=53", "A_PORT_53_UDP=udp://10.0.0.1:53", "A_PORT=tcp://10.0.0.1:80"} {
		if !slices.Contains(named, want) {
			t.Errorf("%s is not in %q", want, named)
		}
	}
}

// Which Services a pod sees.
func TestSeen(t *testing.T) {
	p := corev1.ServicePort{Port: 80}
	all := []*corev1.Service{service("default", "kubernetes", "10.96.0.1", p), service("apps", "web", "10.96.0.2", p), service("apps", "kubernetes", "10.96.0.3", p),
		service("apps", "headless", "None", p), service("other", "db", "10.96.0.4", p), service("default", "d", "10.96.0.5", p)}
	for _, x := range []struct {
		namespace string
		links     bool
		want      []string
	}{
		{"apps", true, []string{"default/kubernetes", "apps/web"}},
		{"apps", false, []string{"default/kubernetes"}},
		{"default", true, []string{"default/d", "default/kubernetes"}},
	} {
		var got []string
		for _, svc := range seen(all, x.namespace, x.links) {
			got = append(got, svc.Namespace+"/"+svc.Name)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s %t: %q", x.namespace, x.links, got)
		}
	}
}

// A pod whose containers ran before gets the same variables while the API is away; another one waits.
func TestWithoutTheAPI(t *testing.T) {
	admin := local.New(registrytest.New(t), registry.System)
	if _, err := admin.Create(t.Context(), service("default", "kubernetes", "10.96.0.1", corev1.ServicePort{Port: 443}), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"ran": t.TempDir(), "new": t.TempDir()}
	podDir := func(uid string) string { return dirs[uid] }
	ran := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "ran", UID: "ran"}}
	f := New(admin, nil, podDir, slog.New(slog.DiscardHandler))
	go f.Run(t.Context())
	before, err := f.Variables(t.Context(), ran)
	if err != nil || len(before) == 0 || before[0].Value != "10.96.0.1" {
		t.Fatal(before, err)
	}
	away := New(faulty.New(admin, faulty.Rates{Drop: 1}, 1), nil, podDir, slog.New(slog.DiscardHandler))
	away.patience = 10 * time.Millisecond
	go away.Run(t.Context())
	if after, err := away.Variables(t.Context(), ran); err != nil || !slices.Equal(after, before) {
		t.Error(after, err)
	}
	if servers, err := f.Nameservers(t.Context(), ran); err != nil || len(servers) != 0 {
		t.Error("a cluster without DNS:", servers, err)
	}
	if _, err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Create(t.Context(), service("kube-system", "kube-dns", "10.96.0.10", corev1.ServicePort{Port: 53}), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		servers, err := f.Nameservers(t.Context(), ran)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(servers, []string{"10.96.0.10"}) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if servers, err := away.Nameservers(t.Context(), ran); err != nil || !slices.Equal(servers, []string{"10.96.0.10"}) {
		t.Error(servers, err)
	}
	if vars, err := away.Variables(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "new", UID: "new"}}); err == nil {
		t.Errorf("a pod that never ran has %v", vars)
	}
}
