package table

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
)

var now = time.Date(2025, 5, 1, 12, 0, 0, 0, time.UTC)

func decode[T any](t testing.TB, manifest string) *T {
	t.Helper()
	v := new(T)
	if err := yaml.Unmarshal([]byte(manifest), v); err != nil {
		t.Fatal(err)
	}
	return v
}

func join(cells []any) string {
	words := make([]string, len(cells))
	for i, c := range cells {
		words[i] = fmt.Sprint(c)
	}
	return strings.Join(words, " | ")
}

func names(kind *api.Kind, l Layout) string {
	var wide, all []string
	for _, c := range Columns(kind, l) {
		if c.Priority > 0 {
			wide = append(wide, c.Name)
		} else {
			all = append(all, c.Name)
		}
	}
	return strings.TrimSuffix(strings.Join(all, ", ")+"; "+strings.Join(wide, ", "), "; ")
}

func TestColumns(t *testing.T) {
	for _, test := range []struct {
		kind *api.Kind
		l    Layout
		want string
	}{
		{api.Pods, Default, "Name, Ready, Status, Restarts, Age; IP, Node, Nominated Node, Readiness Gates"},
		{api.Pods, Extended, "Name, UID, Status, Ipv4, Node, Ports, Cpu, Memory, Last Sync Time, Error"},
		{api.Pods, Compact, "NAME, UID, NODE, STATUS, IP"},
		{api.GpuJobs, Default, "Name, State, JobID, Reason, Nodes, Age; Cluster, Exit"},
		{api.GpuJobs, Extended, "Name, State, Last Sync Time"},
		{api.GpuJobs, Compact, "NAME, UID, JOBID, STATE"},
		{api.SlurmClusters, Default, "Name, Host, User, Connected, Reason, Age"},
		{api.HorizontalPodAutoscalers, Default, "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age; Desired, Condition, Last Scale"},
		{api.HorizontalPodAutoscalers, Extended, "Name, UID, Status, Min Replicas, Max Replicas, Current, Metrics, Benchmark, Last Sync Time, Error"},
		{api.HorizontalPodAutoscalers, Compact, "NAME, UID, REFERENCE, MINPODS, MAXPODS, REPLICAS"},
		{api.Nodes, Default, "Name, Status, Roles, Age, Version; Internal-IP, External-IP, OS-Image, Kernel-Version, Container-Runtime"},
		{api.Nodes, Extended, "Hostname, Status, Ipv4, Cpu, Memory, Pods, Last Sync Time, Error"},
		{api.Nodes, Compact, "NAME, UID, STATUS, IP"},
		{api.ReplicaSets, Default, "Name, Desired, Current, Ready, Age; Containers, Images, Selector"},
		{api.ReplicaSets, Extended, "Name, UID, Status, Replicas, Cpu, Memory, Last Sync Time, Error"},
		{api.ReplicaSets, Compact, "NAME, UID, DESIRED, CURRENT"},
		{api.Deployments, Default, "Name, Ready, Up-to-date, Available, Age; Containers, Images, Selector"},
		{api.DaemonSets, Default, "Name, Desired, Current, Ready, Up-to-date, Available, Node Selector, Age; Containers, Images, Selector"},
		{api.Jobs, Default, "Name, Status, Completions, Duration, Age; Containers, Images, Selector"},
		{api.Events, Default, "Last Seen, Type, Reason, Object, Message; Subobject, Source, First Seen, Count, Name"},
		{api.Ingresses, Default, "Name, Class, Hosts, Address, Ports, Age"},
		{api.IngressClasses, Default, "Name, Controller, Parameters, Age"},
		{api.NetworkPolicies, Default, "Name, Pod-Selector, Age"},
		{api.DNSes, Default, "Name, Host, Address, Paths, Age; Targets"},
		{api.DNSes, Extended, "Name, UID, Host, Paths"},
		{api.DNSes, Compact, "NAME, UID, HOSTNAME, ADDRESS"},
		{api.Secrets, Extended, "Name, Type, Data, Age"},
		{&api.Kind{Kind: "New"}, Compact, "Name, Age"},
	} {
		if got := names(test.kind, test.l); got != test.want {
			t.Errorf("%s in layout %q: got %s, want %s", test.kind.Kind, test.l, got, test.want)
		}
	}
}

func TestPodStatus(t *testing.T) {
	for _, test := range []struct{ name, pod, want string }{
		{"new", `{spec: {containers: [{name: a}, {name: b}]}, status: {phase: Pending}}`, "p | 0/2 | Pending | 0 | 2m"},
		{"running", `{spec: {nodeName: n, containers: [{name: a}]}, status: {phase: Running, podIP: 10.0.0.1, containerStatuses: [{ready: true, state: {running: {}}}]}}`,
			"p | 1/1 | Running | 0 | 2m"},
		{"restarted", `{spec: {containers: [{name: a}]}, status: {phase: Running, containerStatuses: [{ready: true, restartCount: 3, state: {running: {}},
			lastState: {terminated: {exitCode: 1, finishedAt: "2025-05-01T11:58:00Z"}}}]}}`, "p | 1/1 | Running | 3 (2m ago) | 2m"},
		{"crash loop", `{spec: {containers: [{name: a}]}, status: {phase: Running, containerStatuses: [{restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}}]}}`,
			"p | 0/1 | CrashLoopBackOff | 1 | 2m"},
		{"completed", `{spec: {containers: [{name: a}]}, status: {phase: Succeeded, containerStatuses: [{state: {terminated: {reason: Completed}}}]}}`,
			"p | 0/1 | Completed | 0 | 2m"},
		{"one of two ended", `{spec: {containers: [{name: a}, {name: b}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}],
			containerStatuses: [{state: {terminated: {reason: Completed}}}, {ready: true, state: {running: {}}}]}}`, "p | 1/2 | Running | 0 | 2m"},
		{"signal", `{spec: {containers: [{name: a}]}, status: {phase: Failed, containerStatuses: [{state: {terminated: {signal: 9, exitCode: 137}}}]}}`,
			"p | 0/1 | Signal:9 | 0 | 2m"},
		{"init", `{spec: {initContainers: [{name: i}, {name: j}], containers: [{name: a}]}, status: {phase: Pending,
			initContainerStatuses: [{state: {terminated: {exitCode: 0}}}, {state: {running: {}}}]}}`, "p | 0/1 | Init:1/2 | 0 | 2m"},
		{"init failed", `{spec: {initContainers: [{name: i}], containers: [{name: a}]}, status: {phase: Pending,
			initContainerStatuses: [{state: {terminated: {exitCode: 2, reason: Error}}}]}}`, "p | 0/1 | Init:Error | 0 | 2m"},
		{"evicted", `{spec: {containers: [{name: a}]}, status: {phase: Failed, reason: Evicted}}`, "p | 0/1 | Evicted | 0 | 2m"},
		{"terminating", `{metadata: {deletionTimestamp: "2025-05-01T12:00:00Z"}, spec: {containers: [{name: a}]}, status: {phase: Running}}`,
			"p | 0/1 | Terminating | 0 | 2m"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := decode[corev1.Pod](t, test.pod)
			pod.Name, pod.CreationTimestamp = "p", metav1.NewTime(now.Add(-2*time.Minute))
			if got := join(Row(api.Pods, pod, Default, now)[:5]); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestLayouts(t *testing.T) {
	pod := decode[corev1.Pod](t, `
metadata: {name: p, namespace: ns, uid: u1, creationTimestamp: "2025-05-01T11:00:00Z"}
spec:
  nodeName: node1
  containers:
  - {name: a, ports: [{containerPort: 80, hostPort: 8080}, {containerPort: 81}], resources: {requests: {cpu: 100m, memory: 64Mi}}}
  - {name: b, resources: {requests: {cpu: 150m}}}
status:
  phase: Running
  podIP: 10.0.0.2
  conditions: [{type: Ready, status: "True", lastTransitionTime: "2025-05-01T11:30:00Z"}]`)
	node := decode[corev1.Node](t, `
metadata: {name: node1, uid: u2, labels: {node-role.kubernetes.io/worker: "", node-role.kubernetes.io/master: ""}, creationTimestamp: "2025-05-01T11:00:00Z"}
spec: {unschedulable: true}
status:
  addresses: [{type: InternalIP, address: 10.1.0.1}]
  allocatable: {cpu: 2, memory: 4Gi, pods: 110}
  nodeInfo: {kubeletVersion: v1.37.0}
  conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2025-05-01T11:59:50Z"}]`)
	seen := decode[corev1.Node](t, `{metadata: {name: node2, annotations: {minik8s.io/node-ip: 10.1.0.2}}}`)
	lost := decode[corev1.Node](t, `{metadata: {name: node3}, status: {conditions: [{type: Ready, status: Unknown, message: no news}]}}`)
	event := decode[corev1.Event](t, `{metadata: {name: e}, type: Normal, reason: Pulled, message: "done\n", involvedObject: {kind: Pod, name: p},
  source: {component: kubelet, host: node1}, count: 2, firstTimestamp: "2025-05-01T11:59:00Z", lastTimestamp: "2025-05-01T11:59:58Z"}`)
	gpu := decode[minik8s.GpuJob](t, `{metadata: {name: m, namespace: ns, uid: u3, creationTimestamp: "2025-05-01T11:00:00Z"}, spec: {cluster: hpc}, status: {state: COMPLETED, jobID: "17", nodeList: "gpu[01-02]",
  exitCode: 0, submitTime: "2025-05-01T11:10:00Z", endTime: "2025-05-01T11:30:00Z", conditions: [{type: Submitted, status: "True", reason: Accepted}, {type: ResultsReady, status: "True", lastTransitionTime: "2025-05-01T11:45:00Z"}]}}`)
	fresh := decode[minik8s.GpuJob](t, `{metadata: {name: new, namespace: ns}, spec: {cluster: hpc}, status: {conditions: [{type: SourcesReady, status: "True"}, {type: Submitted, status: "False", reason: HostKeyUnknown, lastTransitionTime: "2025-05-01T11:00:00Z"}]}}`)
	for _, test := range []struct {
		kind *api.Kind
		obj  api.Object
		l    Layout
		want string
	}{
		{api.Pods, pod, Extended, "ns/p | u1 | Running | 10.0.0.2 | node1 | 8080:80,81 | 250m | 64Mi | 2025-05-01T11:30:00Z | -"},
		{api.Pods, pod, Compact, "p | u1 | node1 | Running | 10.0.0.2"},
		{api.Nodes, node, Default, "node1 | Ready,SchedulingDisabled | master,worker | 60m | v1.37.0 | 10.1.0.1 | <none> | <unknown> | <unknown> | <unknown>"},
		{api.Nodes, node, Extended, "node1 | Ready | 10.1.0.1 | 2 | 4Gi | 110 | 2025-05-01T11:59:50Z | -"},
		{api.Nodes, node, Compact, "node1 | u2 | Running | 10.1.0.1"},
		{api.Nodes, seen, Extended, "node2 | Unknown | 10.1.0.2 | - | - | - | - | -"},
		{api.Nodes, seen, Compact, "node2 |  | Pending | 10.1.0.2"},
		{api.Nodes, lost, Extended, "node3 | Unknown | - | - | - | - | - | no news"},
		{api.Nodes, lost, Compact, "node3 |  | Terminated | "},
		{api.Events, event, Default, "2s | Normal | Pulled | pod/p |  | kubelet, node1 | done | 60s | 2 | e"},
		{api.Secrets, decode[corev1.Secret](t, `{metadata: {name: s}, type: Opaque, data: {a: MQ==}}`), Default, "s | Opaque | 1 | <unknown>"},
		{api.PodTemplates, decode[corev1.PodTemplate](t, `{metadata: {name: t}, template: {metadata: {labels: {b: c, a: b}}, spec: {containers: [{name: v, image: i:1}, {name: w, image: i:2}]}}}`),
			Default, "t | v,w | i:1,i:2 | a=b,b=c"},
		{api.ReplicationControllers, decode[corev1.ReplicationController](t, `{metadata: {name: rc, creationTimestamp: "2025-05-01T11:00:00Z"}, spec: {replicas: 3, selector: {b: c, a: b},
  template: {spec: {containers: [{name: v, image: i:1}]}}}, status: {replicas: 2, readyReplicas: 1}}`), Default, "rc | 3 | 2 | 1 | 60m | v | i:1 | a=b,b=c"},
		{api.PodTemplates, decode[corev1.PodTemplate](t, `{metadata: {name: t}}`), Default, "t |  |  | <none>"},
		{api.GpuJobs, gpu, Default, "m | COMPLETED | 17 | <none> | gpu[01-02] | 60m | hpc | 0"},
		{api.GpuJobs, gpu, Extended, "ns/m | COMPLETED | 2025-05-01T11:45:00Z"},
		{api.GpuJobs, gpu, Compact, "m | u3 | 17 | COMPLETED"},
		{api.GpuJobs, fresh, Default, "new | <none> | <none> | HostKeyUnknown | <none> | <unknown> | hpc | <none>"},
		{api.GpuJobs, fresh, Extended, "ns/new | Unknown | 2025-05-01T11:00:00Z"},
		{api.GpuJobs, fresh, Compact, "new |  | <none> | PENDING"},
		{api.GpuJobs, decode[minik8s.GpuJob](t, `{metadata: {name: k}, status: {state: FAILED, reason: NonZeroExitCode, exitCode: 1, signal: 9}}`), Default,
			"k | FAILED | <none> | NonZeroExitCode | <none> | <unknown> | <none> | 1:9"},
		{api.SlurmClusters, decode[minik8s.SlurmCluster](t, `{metadata: {name: hpc}, spec: {host: h, port: 2222, user: me}, status: {conditions: [{type: Connected, status: "False", reason: LoginRefused}]}}`), Default,
			"hpc | h:2222 | me | False | LoginRefused | <unknown>"},
		{api.SlurmClusters, decode[minik8s.SlurmCluster](t, `{metadata: {name: hpc}, spec: {host: h, port: 22}, status: {conditions: [{type: Connected, status: "True", reason: ConnectionStands}]}}`), Default,
			"hpc | h | <none> | True | <none> | <unknown>"},
		{api.SlurmClusters, decode[minik8s.SlurmCluster](t, `{metadata: {name: hpc}, spec: {host: h}}`), Default, "hpc | h | <none> | Unknown | <none> | <unknown>"},
		{api.Secrets, pod, Default, "p |  |  | "},
	} {
		if got := join(Row(test.kind, test.obj, test.l, now)); got != test.want {
			t.Errorf("%s in layout %q:\ngot  %s\nwant %s", test.kind.Kind, test.l, got, test.want)
		}
	}
}

func TestBuild(t *testing.T) {
	ended := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	table := Build(api.Pods, []api.Object{&corev1.Pod{}, ended}, Default, now)
	if len(table.Rows) != 2 || len(table.Rows[0].Conditions) != 0 || len(table.Rows[1].Conditions) != 1 {
		t.Errorf("%+v", table.Rows)
	}
	// Cells must survive the copy that codecs make, so they may only have JSON's own types.
	for _, kind := range api.Kinds {
		for _, l := range []Layout{Default, Extended, Compact} {
			cells := Row(kind, kind.New(), l, now)
			if len(cells) != len(Columns(kind, l)) {
				t.Errorf("%s in layout %q: %d cells, %d columns", kind, l, len(cells), len(Columns(kind, l)))
			}
			for _, c := range cells {
				runtime.DeepCopyJSONValue(c)
			}
		}
	}
}

func FuzzRow(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a"},"status":{"containerStatuses":[{}],"initContainerStatuses":[{"state":{}}]}}`))
	f.Add([]byte(`{"involvedObject":{},"series":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, kind := range api.Kinds {
			obj := kind.New()
			if json.Unmarshal(raw, obj) != nil {
				continue
			}
			for _, l := range []Layout{Default, Extended, Compact} {
				if cells := Row(kind, obj, l, now); len(cells) != len(Columns(kind, l)) {
					t.Errorf("%s: %d cells", kind, len(cells))
				}
			}
		}
	})
}
