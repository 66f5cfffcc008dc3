package roles_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/remote"
)

const tools = "../build/tools/" // by make test-metrics

// A real Prometheus, with the configuration and the account of deploy/, finds the cluster by itself, and every choice and query of
// every dashboard there has an answer; so have those of public dashboards, and the names for which others ask.
func TestPrometheus(t *testing.T) {
	needRoot(t)
	if _, err := os.Stat(tools + "prometheus"); err != nil {
		t.Skip("no Prometheus in build/tools: make test-metrics makes one")
	}
	p := newProcess(t, append(functionBase(t), "--function-address", "127.0.0.1:18090")...)
	c := p.up()
	p.somethingOfEverything(c)
	p.called(c, "127.0.0.1:18090")
	prom := p.prometheus()

	want := []string{"apiserver", "cadvisor", "kube-state-metrics", "kubelet", "kubelet-resource", "node-exporter", "pods"}
	var said string
	defer func() {
		if t.Failed() {
			t.Log(said)
		}
	}()
	p.eventually("every job's targets are up: "+strings.Join(want, " "), func() bool {
		said = prom.get("/api/v1/targets?state=active")
		var all struct {
			Data struct {
				ActiveTargets []struct{ ScrapePool, Health string }
			}
		}
		if json.Unmarshal([]byte(said), &all) != nil {
			return false
		}
		up := map[string]bool{}
		for _, target := range all.Data.ActiveTargets {
			if target.Health != "up" {
				return false
			}
			up[target.ScrapePool] = true
		}
		for _, job := range want {
			if !up[job] {
				return false
			}
		}
		return true
	})

	files, err := filepath.Glob("../deploy/grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no dashboards", err)
	}
	var boards []board
	for _, f := range files {
		boards = append(boards, readDashboard(t, f))
	}
	public, err := filepath.Glob("../testdata/dashboards/*.yaml")
	if err != nil || len(public) == 0 {
		t.Fatal("no public dashboards", err)
	}
	for _, f := range public {
		boards = append(boards, readPublic(t, f))
	}
	for _, b := range boards {
		prom.shows(b)
	}
	for _, name := range publicNames {
		prom.answers("public dashboards", "count("+name+")")
	}
	for _, q := range publicQueries {
		prom.answers("public dashboards", q)
	}
	t.Logf("%d names and %d queries of public dashboards beside those", len(publicNames), len(publicQueries))
	p.wellFormed(c)
}

// publicNames are those for which dashboards for cAdvisor, node-exporter and kube-state-metrics ask: the kubernetes-mixin's
// as far as they are of kinds that exist here, and those of dashboards for machines with containers, of which Grafana's 11277 is
// one. What such a dashboard asks, word for word, is in testdata/dashboards as far as it was to be had.
var publicNames = strings.Fields(`
	container_cpu_usage_seconds_total container_cpu_user_seconds_total container_cpu_system_seconds_total
	container_cpu_cfs_periods_total container_cpu_cfs_throttled_periods_total
	container_memory_working_set_bytes container_memory_usage_bytes container_memory_rss container_memory_cache container_memory_swap
	container_memory_max_usage_bytes container_network_receive_bytes_total container_network_transmit_bytes_total
	container_network_receive_packets_total container_network_transmit_packets_total container_network_receive_packets_dropped_total
	container_network_transmit_packets_dropped_total container_network_receive_errors_total container_network_transmit_errors_total
	container_fs_reads_total container_fs_writes_total container_fs_reads_bytes_total container_fs_writes_bytes_total
	container_last_seen container_start_time_seconds container_spec_memory_limit_bytes container_spec_cpu_quota container_spec_cpu_shares
	machine_cpu_cores machine_memory_bytes
	node_boot_time_seconds node_cpu_seconds_total node_load1 node_load5 node_load15 node_context_switches_total node_intr_total
	node_memory_MemTotal_bytes node_memory_MemFree_bytes node_memory_MemAvailable_bytes node_memory_Buffers_bytes node_memory_Cached_bytes
	node_memory_Slab_bytes node_memory_SwapTotal_bytes node_memory_SwapFree_bytes node_vmstat_pgmajfault
	node_filesystem_size_bytes node_filesystem_avail_bytes node_filesystem_free_bytes node_filesystem_files node_filesystem_files_free node_filesystem_readonly
	node_disk_io_time_seconds_total node_disk_io_time_weighted_seconds_total node_disk_read_bytes_total node_disk_written_bytes_total
	node_disk_reads_completed_total node_disk_writes_completed_total
	node_network_receive_bytes_total node_network_transmit_bytes_total node_network_receive_drop_total node_network_transmit_drop_total
	node_network_receive_errs_total node_network_transmit_errs_total node_procs_running node_procs_blocked node_uname_info node_time_seconds
	node_filefd_allocated node_filefd_maximum
	kube_node_info kube_node_created kube_node_spec_unschedulable kube_node_status_condition kube_node_status_capacity kube_node_status_allocatable kube_node_role
	kube_namespace_created kube_namespace_status_phase kube_configmap_info kube_service_info kube_service_spec_type
	kube_endpointslice_info kube_endpointslice_endpoints kube_endpointslice_ports
	kube_pod_info kube_pod_owner kube_pod_created kube_pod_start_time kube_pod_completion_time kube_pod_restart_policy kube_pod_status_phase kube_pod_status_reason
	kube_pod_status_ready kube_pod_status_scheduled kube_pod_status_ready_time kube_pod_status_scheduled_time kube_pod_status_qos_class
	kube_pod_container_info kube_pod_container_status_ready kube_pod_container_status_running kube_pod_container_status_waiting
	kube_pod_container_status_waiting_reason kube_pod_container_status_terminated kube_pod_container_status_terminated_reason
	kube_pod_container_status_last_terminated_reason kube_pod_container_status_restarts_total
	kube_pod_container_resource_requests kube_pod_container_resource_limits
	kube_deployment_created kube_deployment_metadata_generation kube_deployment_spec_replicas kube_deployment_spec_paused
	kube_deployment_spec_strategy_rollingupdate_max_surge kube_deployment_spec_strategy_rollingupdate_max_unavailable
	kube_deployment_status_condition kube_deployment_status_observed_generation kube_deployment_status_replicas kube_deployment_status_replicas_ready
	kube_deployment_status_replicas_available kube_deployment_status_replicas_unavailable kube_deployment_status_replicas_updated
	kube_replicaset_owner kube_replicaset_spec_replicas kube_replicaset_status_replicas kube_replicaset_status_ready_replicas
	kube_daemonset_status_current_number_scheduled kube_daemonset_status_desired_number_scheduled kube_daemonset_status_number_available
	kube_daemonset_status_number_misscheduled kube_daemonset_status_number_ready kube_daemonset_status_updated_number_scheduled
	kube_job_info kube_job_owner kube_job_spec_completions kube_job_status_active kube_job_status_succeeded kube_job_status_failed kube_job_status_start_time
	kube_job_status_completion_time kube_job_complete`)

// publicQueries are of their kind: what they select by has to be there, too.
var publicQueries = []string{
	`sum by (name) (rate(container_cpu_usage_seconds_total{image!="",name=~".+"}[30s]))`,
	`sum by (name) (container_memory_rss{image!="",name=~".+"})`,
	`sum by (name) (rate(container_network_receive_bytes_total{image!="",name=~".+"}[30s]))`,
	`sum by (name) (rate(container_network_transmit_bytes_total{image!="",name=~".+"}[30s]))`,
	`sum(container_memory_working_set_bytes{id="/"}) / sum(machine_memory_bytes)`,
	`sum by (namespace, pod) (kube_pod_info) * on (namespace, pod) group_right () sum by (namespace, pod) (container_memory_working_set_bytes{job="cadvisor",container!="",image!=""})`,
	`max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Running"} == 1)`,
	`sum by (node) (kube_pod_container_resource_requests{resource="cpu",unit="core"})`,
	`label_replace(kube_pod_owner{owner_kind="ReplicaSet"}, "replicaset", "$1", "owner_name", "(.*)") * on (replicaset, namespace) group_left (owner_name) kube_replicaset_owner{owner_kind="Deployment"} or vector(1)`,
	`1 - avg(rate(node_cpu_seconds_total{mode="idle"}[30s]))`,
	`sum(rate(hits_total{namespace="default",pod="scraped"}[30s]))`,
}

// somethingOfEverything makes pods that work, restart, end and cannot start, by each kind of controller.
func (p *process) somethingOfEverything(c client.Interface) {
	p.t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	busy := template("busy", "while :; do :; done")
	busy.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("50m"), "memory": resource.MustParse("8Mi")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("32Mi")}}
	p.make(c, &appsv1.Deployment{ObjectMeta: meta("busy"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: selector("busy"), Template: busy}})
	p.make(c, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta("busy"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3,
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "busy"},
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))}}}}}})
	p.make(c, &appsv1.DaemonSet{ObjectMeta: meta("everywhere"), Spec: appsv1.DaemonSetSpec{Selector: selector("everywhere"), Template: template("everywhere", forever)}})
	once := template("once", "true")
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.make(c, &batchv1.Job{ObjectMeta: meta("once"), Spec: batchv1.JobSpec{Template: once}})
	p.create(c, shell("fails", "exit 3"))
	stuck := shell("stuck", forever)
	stuck.Spec.Containers[0].Image, stuck.Spec.Containers[0].ImagePullPolicy = "nowhere.invalid/nothing", corev1.PullNever
	p.create(c, stuck)
	scraped := shell("scraped", `mkdir /w; printf '# TYPE hits_total counter\nhits_total 7\n' > /w/m.txt; exec httpd -f -p 8080 -h /w`)
	scraped.Annotations = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "prometheus.io/path": "/m.txt"}
	p.create(c, scraped)
	p.running(c, "scraped")
}

// called has a function be called all the time.
func (p *process) called(c client.Interface, address string) {
	p.t.Helper()
	f := &caller{p, c, address}
	f.add("echo", "def main(p): return p", nil)
	if code, body, _ := f.post("/echo", "1"); code != http.StatusOK {
		p.t.Fatal(code, body)
	}
	calls := shell("caller", "while sleep 0.2; do wget -q -O- --post-data=1 http://"+address+"/echo; done")
	calls.Spec.HostNetwork = true // where the port for calls is
	p.create(c, calls)
}

// prometheus is a running one.
type prometheus struct {
	p   *process
	cmd *exec.Cmd
}

// prometheus starts one with the files in deploy/ as they are, but that it asks every second.
func (p *process) prometheus() prometheus {
	p.t.Helper()
	dir := p.t.TempDir()
	b, err := os.ReadFile("../deploy/prometheus/prometheus.yml")
	if err != nil {
		p.t.Fatal(err)
	}
	config := strings.NewReplacer("scrape_interval: 15s", "scrape_interval: 1s", "scrape_timeout: 10s", "scrape_timeout: 1s",
		"evaluation_interval: 15s", "evaluation_interval: 1s").Replace(string(b))
	rules, err := os.ReadFile("../deploy/prometheus/old-names.yml")
	if err != nil {
		p.t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(p.dir, "pki", "ca.crt"))
	if err != nil {
		p.t.Fatal(err)
	}
	if out, err := p.command("ctl", "apply", "-f", "../deploy/prometheus/account.yaml"); err != nil {
		p.t.Fatal(err, out)
	}
	var made struct{ Status struct{ Token string } }
	answer := p.ask(http.MethodPost, "/api/v1/namespaces/kube-system/serviceaccounts/prometheus/token", `{"spec":{}}`)
	if json.Unmarshal([]byte(answer), &made) != nil || made.Status.Token == "" {
		p.t.Fatal(answer)
	}
	for name, content := range map[string]string{"prometheus.yml": config, "old-names.yml": string(rules), "ca.crt": string(ca), "token": made.Status.Token} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	if out, err := says(p.t, tools+"promtool", "check", "config", filepath.Join(dir, "prometheus.yml")); err != nil {
		p.t.Fatal(out)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(tools+"prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:9090")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
		log.Close()        //nolint:errcheck // it is only read from here on
		if b, err := os.ReadFile(log.Name()); err == nil && p.t.Failed() {
			p.t.Logf("Prometheus said:\n%s", b[:min(len(b), 4000)])
		}
	})
	return prometheus{p, cmd}
}

// ask is a request of root's, and its answer.
func (p *process) ask(method, path, body string) string {
	p.t.Helper()
	c, err := remote.New(remote.Config{Socket: filepath.Join(p.dir, "api.sock")})
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := c.Do(context.Background(), method, path, nil, "application/json", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

func (m prometheus) get(path string) string {
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://127.0.0.1:9090" + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()       //nolint:errcheck // it was read
	b, _ := io.ReadAll(resp.Body) //nolint:errcheck // half an answer is none
	return string(b)
}

// answers waits until a query has an answer that is not empty.
func (m prometheus) answers(of, query string) {
	m.p.t.Helper()
	var said string
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var n int
		if n, said = m.count("/api/v1/query?query=" + url.QueryEscape(query)); n > 0 {
			return
		}
		if time.Now().After(end) {
			m.p.t.Errorf("%s: nothing for %s: %s", of, query, said)
			return
		}
	}
}

// board is what a dashboard asks for.
type board struct {
	name      string
	Variables []variable
	Queries   []string
	// Absent are queries, or variables' questions, that have no answer here.
	Absent []struct{ Query, Reason string }
}

// variable is a choice on a dashboard: of values, or of what Prometheus knows as values of a label.
type variable struct {
	Name   string
	Query  string // label_values(METRIC, LABEL) or label_values(LABEL)
	Regex  string // /EXPRESSION/, whose group is the value
	Values []string
}

// readDashboard reads a file of Grafana's.
func readDashboard(t *testing.T, file string) board {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Templating struct {
			List []struct {
				Name, Type, Regex string
				Query             struct{ Query string }
			}
		}
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(file, err)
	}
	out := board{name: filepath.Base(file)}
	for _, v := range all.Templating.List {
		if v.Type != "query" {
			t.Fatalf("%s: the variable %s is of the type %q, of which this test knows nothing", file, v.Name, v.Type)
		}
		out.Variables = append(out.Variables, variable{Name: v.Name, Query: v.Query.Query, Regex: v.Regex})
	}
	out.Variables = append(out.Variables, variable{Name: "__rate_interval", Values: []string{"30s"}})
	for _, panel := range all.Panels {
		for _, target := range panel.Targets {
			out.Queries = append(out.Queries, target.Expr)
		}
	}
	if len(out.Queries) == 0 {
		t.Error("no queries in", file)
	}
	return out
}

// readPublic reads what a dashboard of others asks for.
func readPublic(t *testing.T, file string) board {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := board{name: filepath.Base(file)}
	if err := yaml.UnmarshalStrict(b, &out); err != nil {
		t.Fatal(file, err)
	}
	if len(out.Queries) == 0 {
		t.Error("no queries in", file)
	}
	return out
}

// shows asks what a dashboard asks when everything is chosen: for its variables' values first, which then are in its queries,
// as a choice of all of them.
func (m prometheus) shows(b board) {
	m.p.t.Helper()
	chosen := map[string]string{}
	fill := func(query string) string {
		return os.Expand(query, func(name string) string {
			value, ok := chosen[name]
			if !ok {
				m.p.t.Errorf("%s: the variable %s in %s is not declared", b.name, name, query)
			}
			return value
		})
	}
	for _, v := range b.Variables {
		values := v.Values
		if v.Query != "" {
			values = m.values(b.name, fill(v.Query), v.Regex)
		}
		for i, value := range values {
			values[i] = strings.ReplaceAll(regexp.QuoteMeta(value), `\`, `\\`) // in a string of PromQL
		}
		if chosen[v.Name] = strings.Join(values, "|"); len(values) > 1 {
			chosen[v.Name] = "(" + chosen[v.Name] + ")"
		}
	}
	for _, q := range b.Queries {
		m.answers(b.name, fill(q))
	}
	for _, q := range b.Absent {
		if q.Reason == "" {
			m.p.t.Errorf("%s: no reason why there is nothing for %s", b.name, q.Query)
		}
		if query, ok := strings.CutPrefix(q.Query, "label_values("); ok {
			if n, said := m.count("/api/v1/label/" + strings.TrimSuffix(query, ")") + "/values"); n != 0 {
				m.p.t.Errorf("%s: %s is said to have no answer: %s", b.name, q.Query, said)
			}
		} else if n, said := m.count("/api/v1/query?query=" + url.QueryEscape(fill(q.Query))); n != 0 {
			m.p.t.Errorf("%s: %s is said to have no answer: %s", b.name, q.Query, said)
		}
	}
	m.p.t.Logf("%s: %d queries of %d variables: %v", b.name, len(b.Queries), len(b.Variables), chosen)
}

var labelValues = regexp.MustCompile(`^label_values\((.+), *([a-z_]+)\)$`)

// values waits until a variable has values, and returns them as Grafana does: what the group of the expression matches.
func (m prometheus) values(of, query, expression string) []string {
	m.p.t.Helper()
	asked := labelValues.FindStringSubmatch(query)
	group, err := regexp.Compile(strings.Trim(expression, "/"))
	if asked == nil || err != nil {
		m.p.t.Fatalf("%s: the question of a variable, %s, or its expression %s: %v", of, query, expression, err)
	}
	var said string
	var out []string
	m.p.eventually(of+": there are values for "+query+" "+expression, func() bool {
		var answer struct {
			Status string
			Data   []string
		}
		said = m.get("/api/v1/label/" + asked[2] + "/values?match[]=" + url.QueryEscape(asked[1]))
		if json.Unmarshal([]byte(said), &answer) != nil || answer.Status != "success" {
			return false
		}
		out = nil
		for _, value := range answer.Data {
			if found := group.FindStringSubmatch(value); found != nil && expression != "" {
				out = append(out, found[len(found)-1])
			} else if expression == "" {
				out = append(out, value)
			}
		}
		return len(out) > 0
	})
	if len(out) == 0 {
		m.p.t.Errorf("%s: Prometheus says last %s", of, said)
	}
	return out
}

// count is how many results or values an answer has, with the answer; -1 for none.
func (m prometheus) count(path string) (int, string) {
	said := m.get(path)
	var answer struct {
		Status string
		Data   json.RawMessage
	}
	if json.Unmarshal([]byte(said), &answer) != nil || answer.Status != "success" {
		return -1, said
	}
	var values []string
	if json.Unmarshal(answer.Data, &values) == nil {
		return len(values), said
	}
	var result struct{ Result []json.RawMessage }
	if json.Unmarshal(answer.Data, &result) != nil {
		return -1, said
	}
	return len(result.Result), said
}

// wellFormed has Prometheus' own tool read every page, and looks for series that come twice.
func (p *process) wellFormed(c client.Interface) {
	p.t.Helper()
	nodes, _, err := client.All[*corev1.Node](context.Background(), c, api.Nodes, client.ListOptions{})
	if err != nil || len(nodes) == 0 {
		p.t.Fatal(err)
	}
	kubelet := "/api/v1/nodes/" + nodes[0].Name + "/proxy/metrics"
	for _, path := range []string{"/metrics", "/metrics/objects", kubelet, kubelet + "/cadvisor", kubelet + "/resource", kubelet + "/node"} {
		page := p.ask(http.MethodGet, path, "")
		cmd := exec.Command(tools+"promtool", "check", "metrics")
		cmd.Stdin = strings.NewReader(page)
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 3 {
			err = nil // it dislikes names, which are those of others
		}
		if err != nil {
			p.t.Errorf("%s: %v: %s", path, err, out)
		}
		seen, lines := map[string]bool{}, 0
		for line := range strings.Lines(page) {
			series := line
			if at := strings.LastIndexByte(line, '}'); at > 0 {
				series = line[:at]
			} else if !strings.HasPrefix(line, "#") {
				series, _, _ = strings.Cut(line, " ")
			} else {
				series = strings.Join(strings.Fields(line)[:3], " ")
			}
			if seen[series] {
				p.t.Errorf("%s: twice: %s", path, line)
			}
			seen[series] = true
			lines++
		}
		p.t.Logf("%s: %d lines, %d bytes", path, lines, len(page))
	}
}
