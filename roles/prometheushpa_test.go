package roles_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
)

// Replicas follow what pods say to a real Prometheus: their own average, a number of a Service, and one of nobody's, the last
// two down to none and back. When Prometheus is gone nothing is scaled, and it is said why.
func TestPrometheusAutoscaling(t *testing.T) {
	needRoot(t)
	if _, err := os.Stat(tools + "prometheus"); err != nil {
		t.Skip("no Prometheus in build/tools: make test-metrics makes one")
	}
	p := newProcess(t, "--prometheus=http://127.0.0.1:9090")
	c := p.up()
	const custom, external = "/apis/custom.metrics.k8s.io/v1beta2", "/apis/external.metrics.k8s.io/v1beta1"
	says := func(path string, want ...string) {
		t.Helper()
		out := ""
		defer func() {
			if t.Failed() {
				t.Log(out)
			}
		}()
		p.eventually(fmt.Sprintf("%s says %s", path, want), func() bool {
			out = p.raw(path)
			return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(out, w) })
		})
	}
	says(custom+"/namespaces/default/pods/*/work", "Prometheus at http://127.0.0.1:9090 does not answer", "connection refused")
	prom := p.prometheus()

	p.exposes(c, "queues", `jobs_waiting{service="mail"} 3\norders_waiting{queue="mail"} 4\norders_waiting{queue="other"} 90\n`+
		`# TYPE mails_total counter\nmails_total 7\nage NaN\n`)
	p.make(c, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mail"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "mailers"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}})
	work := autoscalingv2.MetricIdentifier{Name: "work"}
	p.scales(c, "workers", 1, autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: work, Target: average("1")}})
	p.scales(c, "mailers", 0, autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "jobs_waiting"}, Target: average("1"),
		DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Service", Name: "mail"}}})
	p.scales(c, "consumers", 0, autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "orders_waiting", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "mail"}}}, Target: average("2")}})
	replicas := func(want map[string]int32) {
		t.Helper()
		var got map[string]int32
		defer func() {
			if t.Failed() {
				t.Log(got)
			}
		}()
		p.eventually(fmt.Sprintf("replicas are %v", want), func() bool {
			got = map[string]int32{}
			for name := range want {
				d, err := client.Get[*appsv1.Deployment](t.Context(), c, client.Key{Kind: api.Deployments, Namespace: "default", Name: name})
				if err == nil {
					got[name] = *d.Spec.Replicas
				}
			}
			return fmt.Sprint(got) == fmt.Sprint(want)
		})
	}
	replicas(map[string]int32{"workers": 1, "mailers": 3, "consumers": 2})

	says(custom, `"name":"pods/work"`, `"name":"services/jobs_waiting"`, `"kind":"MetricValueList"`)
	says(external, `"name":"orders_waiting"`)
	says(custom+"/namespaces/default/services/mail/jobs_waiting", `"describedObject":{"kind":"Service","namespace":"default","name":"mail","apiVersion":"v1"}`, `"value":"3"`)
	says(external+"/namespaces/default/orders_waiting?labelSelector=queue%3Dother", `"queue":"other"`, `"value":"90"`)
	says(custom+"/namespaces/default/pods/queues/mails", `"name":"mails"`, `"value":"0"`) // a rate
	says(custom+"/namespaces/default/pods/queues/age", "the server could not find the metric age for pods queues")
	says("/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.custom.metrics.k8s.io", `"reason":"Local"`)
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		out, err := exec.Command(kubectl, "--kubeconfig", filepath.Join(p.dir, "admin.kubeconfig"), "get", "--raw", custom+"/namespaces/default/pods/*/work").CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"value":"1"`) {
			t.Errorf("%v: %s", err, out)
		}
	}

	p.write("queues", `jobs_waiting{service="mail"} 0\norders_waiting{queue="mail"} 0\n`)
	for _, pod := range pods(c, "workers") {
		p.write(pod.Name, `work 3\n`)
	}
	replicas(map[string]int32{"workers": 3, "mailers": 0, "consumers": 0})
	for name, want := range map[string]string{"workers": "pods metric work", "mailers": "jobs_waiting of Service mail", "consumers": "orders_waiting"} {
		p.explains(name, want)
	}
	p.write("queues", `jobs_waiting{service="mail"} 1\norders_waiting{queue="mail"} 3\n`)
	replicas(map[string]int32{"mailers": 1, "consumers": 2})

	prom.cmd.Process.Kill() //nolint:errcheck // it runs
	for name, reason := range map[string]string{"workers": "FailedGetPodsMetric", "mailers": "FailedGetObjectMetric", "consumers": "FailedGetExternalMetric"} {
		p.eventually(name+" has the reason "+reason, func() bool {
			h, err := client.Get[*autoscalingv2.HorizontalPodAutoscaler](t.Context(), c, client.Key{Kind: api.HorizontalPodAutoscalers, Namespace: "default", Name: name})
			return err == nil && slices.ContainsFunc(h.Status.Conditions, func(x autoscalingv2.HorizontalPodAutoscalerCondition) bool {
				return x.Type == autoscalingv2.ScalingActive && x.Status == corev1.ConditionFalse && x.Reason == reason && strings.Contains(x.Message, "connection refused")
			})
		})
		p.explains(name, "see that this Prometheus runs")
	}
	replicas(map[string]int32{"mailers": 1, "consumers": 2})
	p.stop()
}

// raw is what root gets from a path, or why not.
func (p *process) raw(path string) string {
	p.t.Helper()
	c, err := remote.New(remote.Config{Socket: filepath.Join(p.dir, "api.sock")})
	if err != nil {
		p.t.Fatal(err)
	}
	at, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := c.Do(p.t.Context(), http.MethodGet, at, values, "", nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()       //nolint:errcheck // it was read
	b, _ := io.ReadAll(resp.Body) //nolint:errcheck // what is missing is noticed
	return string(b)
}

func average(value string) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse(value))}
}

// exposing serves a page of metrics, which write changes.
func exposing(pod *corev1.PodTemplateSpec, page string) {
	pod.Spec.Containers[0].Command[2] = fmt.Sprintf(`mkdir /w; printf '%s' > /w/m.txt; exec httpd -f -p 8080 -h /w`, page)
	pod.Annotations = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "prometheus.io/path": "/m.txt"}
}

func (p *process) exposes(c client.Interface, name, page string) {
	p.t.Helper()
	t := template(name, "")
	exposing(&t, page)
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Namespace, pod.Name = "default", name
	p.create(c, pod)
	p.running(c, name)
}

func (p *process) write(pod, page string) {
	p.t.Helper()
	if out, err := p.command("ctl", "exec", pod, "--", "sh", "-c", fmt.Sprintf(`printf '%s' > /w/new && mv /w/new /w/m.txt`, page)); err != nil {
		p.t.Fatal(err, out)
	}
}

// scales makes a Deployment, of which each pod has the metric work of 1, and an autoscaler for at most 3 of them that is
// not slow to shrink it.
func (p *process) scales(c client.Interface, name string, least int32, metric autoscalingv2.MetricSpec) {
	p.t.Helper()
	t, meta := template(name, ""), metav1.ObjectMeta{Namespace: "default", Name: name}
	exposing(&t, `work 1\n`)
	p.make(c, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: selector(name), Template: t}})
	p.eventually(name+" runs", func() bool {
		d, err := client.Get[*appsv1.Deployment](context.Background(), c, client.Key{Kind: api.Deployments, Namespace: "default", Name: name})
		return err == nil && d.Status.AvailableReplicas == 1
	})
	p.make(c, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &least, MaxReplicas: 3,
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, Metrics: []autoscalingv2.MetricSpec{metric},
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0))}}}})
}

// explains waits until ctl says why of an autoscaler.
func (p *process) explains(name, want string) {
	p.t.Helper()
	out := ""
	for end := time.Now().Add(30 * time.Second); !strings.Contains(out, want); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("ctl why hpa %s: nothing of %q:\n%s", name, want, out)
		}
		out, _ = p.command("ctl", "why", "hpa", name) //nolint:errcheck // it says so
	}
	p.t.Logf("ctl why hpa %s:\n%s", name, out)
}
