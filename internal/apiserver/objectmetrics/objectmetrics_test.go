package objectmetrics

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/exposition"
)

var born = metav1.NewTime(time.Unix(1e9, 0))

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u", CreationTimestamp: born, Generation: 7}
}

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func ref[T any](v T) *T { return &v }

// What each kind says, by example; names, labels and values are those of kube-state-metrics' docs.
func TestFamilies(t *testing.T) {
	controller := metav1.OwnerReference{Kind: "ReplicaSet", Name: "rs", Controller: ref(true)}
	running := &corev1.Pod{ObjectMeta: meta("p"),
		Spec: corev1.PodSpec{NodeName: "n1", RestartPolicy: "Always", Containers: []corev1.Container{{Name: "c", Image: "want",
			Resources: corev1.ResourceRequirements{Requests: list("cpu", "250m", "memory", "1Mi"), Limits: list("ephemeral-storage", "2Ki")}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", StartTime: &born, QOSClass: corev1.PodQOSBurstable,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: born}, {Type: corev1.PodScheduled, Status: corev1.ConditionUnknown}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Image: "got", Ready: true, RestartCount: 4, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: born}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: born}}}}}}
	running.OwnerReferences = []metav1.OwnerReference{controller}
	waiting := &corev1.Pod{ObjectMeta: meta("w"), Status: corev1.PodStatus{Phase: corev1.PodPending, Reason: "Evicted",
		Conditions:            []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", FinishedAt: born}}}}}}
	const pod = `{namespace="ns",pod="p",uid="u"`
	const pending = `{namespace="ns",pod="w",uid="u"`
	for _, x := range []struct {
		kind interface {
			write(*exposition.Text, []api.Object)
		}
		objects []api.Object
		want    []string
		not     []string
	}{
		{nodes, []api.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"node-role.kubernetes.io/control-plane": "", "x": "y"}},
			Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}}},
			Status: corev1.NodeStatus{Capacity: list("cpu", "1500m", "pods", "110", "example.com/gpu", "2"), Allocatable: list("memory", "1Ki"),
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.1.1"}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v9"}}}},
			[]string{`kube_node_status_capacity{node="n1",resource="cpu",unit="core"} 1.5`, `kube_node_status_capacity{node="n1",resource="pods",unit="integer"} 110`,
				`kube_node_status_capacity{node="n1",resource="example_com_gpu",unit="integer"} 2`, `kube_node_status_allocatable{node="n1",resource="memory",unit="byte"} 1024`,
				`kube_node_status_condition{node="n1",condition="Ready",status="unknown"} 1`, `kube_node_status_condition{node="n1",condition="Ready",status="true"} 0`,
				`kube_node_role{node="n1",role="control-plane"} 1`, `kube_node_spec_unschedulable{node="n1"} 1`, `kube_node_spec_taint{node="n1",key="k",value="v",effect="NoSchedule"} 1`,
				`kubelet_version="v9"`, `internal_ip="10.1.1.1"} 1`}, []string{`role="x"`, "kube_node_created"}},
		{namespaces, []api.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}},
			[]string{`kube_namespace_status_phase{namespace="a",phase="Active"} 0`, `kube_namespace_status_phase{namespace="a",phase="Terminating"} 1`}, nil},
		{pods, []api.Object{running, waiting}, []string{
			"kube_pod_info" + pod + `,host_ip="",pod_ip="10.0.0.1",node="n1",created_by_kind="ReplicaSet",created_by_name="rs",priority_class="",host_network="false"} 1`,
			"kube_pod_owner" + pod + `,owner_kind="ReplicaSet",owner_name="rs",owner_is_controller="true"} 1`,
			"kube_pod_owner" + pending + `,owner_kind="",owner_name="",owner_is_controller=""} 1`,
			"kube_pod_created" + pod + "} 1000000000", "kube_pod_start_time" + pod + "} 1000000000", "kube_pod_completion_time" + pending + "} 1000000000",
			"kube_pod_status_phase" + pod + `,phase="Running"} 1`, "kube_pod_status_phase" + pod + `,phase="Failed"} 0`,
			"kube_pod_status_reason" + pending + `,reason="Evicted"} 1`, "kube_pod_status_reason" + pod + `,reason="Evicted"} 0`,
			"kube_pod_status_ready" + pod + `,condition="true"} 1`, "kube_pod_status_ready" + pod + `,condition="false"} 0`,
			"kube_pod_status_scheduled" + pod + `,condition="unknown"} 1`, "kube_pod_status_unschedulable" + pending + "} 1", "kube_pod_status_ready_time" + pod + "} 1000000000",
			"kube_pod_status_qos_class" + pod + `,qos_class="Burstable"} 1`, "kube_pod_restart_policy" + pod + `,type="Always"} 1`,
			"kube_pod_container_info" + pod + `,container="c",image_spec="want",image="got",image_id="",container_id=""} 1`,
			"kube_pod_container_status_running" + pod + `,container="c"} 1`, "kube_pod_container_status_waiting" + pod + `,container="c"} 0`,
			"kube_pod_container_status_ready" + pod + `,container="c"} 1`, "# TYPE kube_pod_container_status_restarts_total counter",
			"kube_pod_container_status_restarts_total" + pod + `,container="c"} 4`, "kube_pod_container_status_last_terminated_reason" + pod + `,container="c",reason="OOMKilled"} 1`,
			"kube_pod_container_status_last_terminated_exitcode" + pod + `,container="c"} 137`, "kube_pod_container_status_terminated_reason" + pending + `,container="c",reason="Error"} 1`,
			"kube_pod_init_container_status_waiting_reason" + pending + `,container="i",reason="ErrImagePull"} 1`,
			"kube_pod_container_resource_requests" + pod + `,container="c",node="n1",resource="cpu",unit="core"} 0.25`,
			"kube_pod_container_resource_requests" + pod + `,container="c",node="n1",resource="memory",unit="byte"} 1048576`,
			"kube_pod_container_resource_limits" + pod + `,container="c",node="n1",resource="ephemeral_storage",unit="byte"} 2048`,
			"kube_pod_container_state_started" + pod + `,container="c"} 1000000000`},
			[]string{"kube_pod_completion_time" + pod, "kube_pod_status_unschedulable" + pod, "kube_pod_init_container_resource", "kube_pod_deletion_timestamp"}},
		{deployments, []api.Object{&appsv1.Deployment{ObjectMeta: meta("d"), Spec: appsv1.DeploymentSpec{Replicas: ref(int32(10)), Paused: true,
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: ref(intstr.FromString("25%")), MaxSurge: ref(intstr.FromString("25%"))}}},
			Status: appsv1.DeploymentStatus{Replicas: 9, Conditions: []appsv1.DeploymentCondition{{Type: "Available", Status: "True", Reason: "R"}}}}},
			[]string{`kube_deployment_spec_replicas{namespace="ns",deployment="d"} 10`, `kube_deployment_spec_paused{namespace="ns",deployment="d"} 1`,
				`kube_deployment_spec_strategy_rollingupdate_max_unavailable{namespace="ns",deployment="d"} 2`, `kube_deployment_spec_strategy_rollingupdate_max_surge{namespace="ns",deployment="d"} 3`,
				`kube_deployment_status_replicas{namespace="ns",deployment="d"} 9`, `kube_deployment_metadata_generation{namespace="ns",deployment="d"} 7`,
				`kube_deployment_status_condition{namespace="ns",deployment="d",condition="Available",status="true",reason="R"} 1`}, nil},
		{replicaSets, []api.Object{&appsv1.ReplicaSet{ObjectMeta: meta("r"), Status: appsv1.ReplicaSetStatus{ReadyReplicas: 2}}},
			[]string{`kube_replicaset_status_ready_replicas{namespace="ns",replicaset="r"} 2`, `kube_replicaset_owner{namespace="ns",replicaset="r",owner_kind="",owner_name="",owner_is_controller=""} 1`}, nil},
		{replicationControllers, []api.Object{&corev1.ReplicationController{ObjectMeta: meta("r")}}, []string{`kube_replicationcontroller_spec_replicas{namespace="ns",replicationcontroller="r"} 0`}, nil},
		{daemonSets, []api.Object{&appsv1.DaemonSet{ObjectMeta: meta("d"), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3}}},
			[]string{`kube_daemonset_status_desired_number_scheduled{namespace="ns",daemonset="d"} 3`}, nil},
		{jobs, []api.Object{&batchv1.Job{ObjectMeta: meta("j"), Status: batchv1.JobStatus{Failed: 2, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: "BackoffLimitExceeded"}}}}},
			[]string{`kube_job_status_failed{namespace="ns",job_name="j",reason="BackoffLimitExceeded"} 2`, `kube_job_failed{namespace="ns",job_name="j",condition="true"} 1`,
				`kube_job_failed{namespace="ns",job_name="j",condition="unknown"} 0`}, []string{"kube_job_complete"}},
		{services, []api.Object{&corev1.Service{ObjectMeta: meta("s"), Spec: corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "10.96.0.5", ExternalIPs: []string{"1.2.3.4"}}}},
			[]string{`kube_service_info{namespace="ns",service="s",uid="u",cluster_ip="10.96.0.5",`, `kube_service_spec_type{namespace="ns",service="s",uid="u",type="ClusterIP"} 1`,
				`kube_service_spec_external_ip{namespace="ns",service="s",uid="u",external_ip="1.2.3.4"} 1`}, nil},
		{endpointSlices, []api.Object{&discoveryv1.EndpointSlice{ObjectMeta: meta("e"), AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Name: ref("http"), Port: ref(int32(80))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: "ns"}, Conditions: discoveryv1.EndpointConditions{Ready: ref(false)}}}}},
			[]string{`kube_endpointslice_info{namespace="ns",endpointslice="e",addresstype="IPv4"} 1`, `kube_endpointslice_endpoints{namespace="ns",endpointslice="e",ready="false",serving="",`,
				`address="10.0.0.1"} 1`, `kube_endpointslice_ports{namespace="ns",endpointslice="e",port_name="http",port_protocol="",port_number="80",app_protocol=""} 1`}, nil},
		{ingresses, []api.Object{&networkingv1.Ingress{ObjectMeta: meta("i"), Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{
			{Host: "h", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{
				{Path: "/a", Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}}},
				{Path: "/a", Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}}},
			[]string{`kube_ingress_path{namespace="ns",ingress="i",host="h",path="/a",service_name="s",service_port="80"} 1`}, nil},
		{configMaps, []api.Object{&corev1.ConfigMap{ObjectMeta: meta("m"), Data: map[string]string{"k": "words"}}}, []string{`kube_configmap_info{namespace="ns",configmap="m"} 1`}, []string{"words"}},
		{autoscalers, []api.Object{&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta("h"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 9,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
			Metrics:        []autoscalingv2.MetricSpec{{Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: autoscalingv2.MetricTarget{AverageUtilization: ref(int32(50))}}}}},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 2, DesiredReplicas: 3,
				CurrentMetrics: []autoscalingv2.MetricStatus{{Resource: &autoscalingv2.ResourceMetricStatus{Name: "cpu", Current: autoscalingv2.MetricValueStatus{AverageUtilization: ref(int32(80)), AverageValue: ref(resource.MustParse("80m"))}}}},
				Conditions:     []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: "AbleToScale", Status: "True"}}}}},
			[]string{`kube_horizontalpodautoscaler_spec_max_replicas{namespace="ns",horizontalpodautoscaler="h"} 9`, `kube_horizontalpodautoscaler_spec_min_replicas{namespace="ns",horizontalpodautoscaler="h"} 1`,
				`kube_horizontalpodautoscaler_spec_target_metric{namespace="ns",horizontalpodautoscaler="h",metric_name="cpu",metric_target_type="utilization"} 50`,
				`kube_horizontalpodautoscaler_status_target_metric{namespace="ns",horizontalpodautoscaler="h",metric_name="cpu",metric_target_type="average"} 0.08`,
				`kube_horizontalpodautoscaler_status_desired_replicas{namespace="ns",horizontalpodautoscaler="h"} 3`,
				`kube_horizontalpodautoscaler_info{namespace="ns",horizontalpodautoscaler="h",scaletargetref_api_version="apps/v1",scaletargetref_kind="Deployment",scaletargetref_name="d"} 1`,
				`kube_horizontalpodautoscaler_status_condition{namespace="ns",horizontalpodautoscaler="h",condition="AbleToScale",status="true"} 1`}, nil},
	} {
		p := &exposition.Text{}
		x.kind.write(p, x.objects)
		got := string(p.Bytes())
		for _, want := range x.want {
			if !strings.Contains(got, want) {
				t.Errorf("without %s:\n%s", want, got)
			}
		}
		for _, not := range x.not {
			if strings.Contains(got, not) {
				t.Errorf("with %s:\n%s", not, got)
			}
		}
		seen := map[string]bool{}
		for line := range strings.Lines(got) {
			series := line[:strings.LastIndex(line, " ")]
			if seen[series] {
				t.Errorf("twice: %s", series)
			}
			seen[series] = true
		}
	}
}

// A client that goes away ends the page.
func TestWriteFails(t *testing.T) {
	if err := Write(failing{}, manyPods(100)); err == nil {
		t.Error("no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func manyPods(n int) func(*api.Kind) []api.Object {
	var all []api.Object
	for i := range n {
		p := &corev1.Pod{ObjectMeta: meta(fmt.Sprintf("web-7f9c6bd5f4-%05d", i)), Spec: corev1.PodSpec{NodeName: "n1", RestartPolicy: "Always",
			Containers: []corev1.Container{{Name: "c", Image: "registry.example.org/web:1", Resources: corev1.ResourceRequirements{Requests: list("cpu", "100m", "memory", "64Mi"), Limits: list("memory", "64Mi")}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.244.0.1", StartTime: &born, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: "True", LastTransitionTime: born},
				{Type: corev1.PodScheduled, Status: "True", LastTransitionTime: born}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: born}}}}}}
		p.UID = "8a3a7c1e-7f3a-4c3e-9a2b-0123456789ab"
		all = append(all, p)
	}
	return func(k *api.Kind) []api.Object {
		if k == api.Pods {
			return all
		}
		return nil
	}
}

// BenchmarkPods is /metrics/objects with 1,000 pods.
func BenchmarkPods(b *testing.B) {
	all := manyPods(1000)
	var out bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		if err := Write(&out, all); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(out.Len()))
}
