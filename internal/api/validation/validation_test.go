package validation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
)

func decode[T any](t testing.TB, manifest string) *T {
	t.Helper()
	v := new(T)
	if err := yaml.Unmarshal([]byte(manifest), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// pod returns a pod with the given spec and the API server's defaults.
func pod(t testing.TB, spec string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: *decode[corev1.PodSpec](t, spec)}
	defaults.Pod(p)
	return p
}

// paths returns the types and fields of errors: "Required spec.containers".
func paths(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, strings.TrimPrefix(string(e.Type), "FieldValue")+" "+e.Field)
	}
	slices.Sort(out)
	return out
}

func expect(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := paths(errs); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n%v", got, want, errs.ToAggregate())
	}
}

func TestManyMistakesAtOnce(t *testing.T) {
	p := pod(t, `
restartPolicy: Sometimes
dnsPolicy: None
nodeSelector: {"no good": x}
hostNetwork: true
volumes:
- {name: v, emptyDir: {}, hostPath: {path: /a/../b}}
- {name: v, emptyDir: {}}
tolerations:
- {operator: Equal, value: x}
containers:
- name: Bad_Name
  ports: [{containerPort: 70000}, {containerPort: 80, hostPort: 81, name: up_per}]
  env: [{name: "A=B"}, {name: E, value: x, valueFrom: {fieldRef: {fieldPath: status.mood}}}]
  resources: {requests: {cpu: 2}, limits: {cpu: 1, memory: -1, fuel: 3}}
  volumeMounts: [{name: v, mountPath: /m}, {name: gone, mountPath: /m}, {name: v, mountPath: /n, subPath: /abs}]
  securityContext: {privileged: true, allowPrivilegeEscalation: false, runAsUser: -1}
- name: two
  image: x
- name: two
  image: " x"
  imagePullPolicy: Maybe
`)
	expect(t, Pod(p),
		"NotSupported spec.restartPolicy",
		"Required spec.dnsConfig.nameservers",
		"Invalid spec.nodeSelector",
		"Forbidden spec.volumes[0].emptyDir",
		"Invalid spec.volumes[0].hostPath.path",
		"Duplicate spec.volumes[1].name",
		"Invalid spec.tolerations[0].operator",
		"Invalid spec.containers[0].name",
		"Required spec.containers[0].image",
		"Invalid spec.containers[0].ports[0].containerPort",
		"Invalid spec.containers[0].ports[0].hostPort",
		"Invalid spec.containers[0].ports[1].name",
		"Invalid spec.containers[0].ports[1].hostPort",
		"Invalid spec.containers[0].env[0].name",
		"NotSupported spec.containers[0].env[1].valueFrom.fieldRef.fieldPath",
		"Invalid spec.containers[0].env[1].valueFrom",
		"Invalid spec.containers[0].resources.requests[cpu]",
		"Invalid spec.containers[0].resources.limits[memory]",
		"Invalid spec.containers[0].resources.limits[fuel]",
		"Invalid spec.containers[0].resources.requests[memory]",
		"Invalid spec.containers[0].resources.requests[fuel]",
		"Invalid spec.containers[0].volumeMounts[1].mountPath",
		"NotFound spec.containers[0].volumeMounts[1].name",
		"Invalid spec.containers[0].volumeMounts[2].subPath",
		"Invalid spec.containers[0].securityContext.allowPrivilegeEscalation",
		"Invalid spec.containers[0].securityContext.runAsUser",
		"Duplicate spec.containers[2].name",
		"Invalid spec.containers[2].image",
		"NotSupported spec.containers[2].imagePullPolicy",
	)
}

func TestPodRules(t *testing.T) {
	const c = "containers: [{name: c, image: x}]\n"
	for _, test := range []struct {
		name, spec string
		want       []string
	}{
		{"nothing wrong", c, nil},
		{"no containers", "{}", []string{"Required spec.containers"}},
		{"host ports clash", "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 9}]}, {name: b, image: x, ports: [{containerPort: 2, hostPort: 9}]}]",
			[]string{"Duplicate spec.containers[1].ports[0].hostPort"}},
		{"host ports of two protocols", "containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 9}, {containerPort: 1, hostPort: 9, protocol: UDP}]}]", nil},
		{"toleration", c + "tolerations: [{key: a, operator: Exists, value: b}, {key: a, effect: NoSchedule, tolerationSeconds: 1}, {key: a, operator: Like}]",
			[]string{"Invalid spec.tolerations[0].value", "Invalid spec.tolerations[1].effect", "NotSupported spec.tolerations[2].operator"}},
		{"affinity", c + `affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}
    preferredDuringSchedulingIgnoredDuringExecution:
    - {weight: 0, preference: {matchExpressions: [{key: a, operator: In}, {key: a, operator: Gt, values: [x]}]}}
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {a: b}}}]`,
			[]string{
				"Required spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
				"Invalid spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
				"Required spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values",
				"Invalid spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[1].values[0]",
				"Required spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
			}},
		{"probe", "containers: [{name: c, image: x, livenessProbe: {successThreshold: 2}, readinessProbe: {exec: {command: [a]}, tcpSocket: {port: 1}}}]",
			[]string{
				"Required spec.containers[0].livenessProbe", "Invalid spec.containers[0].livenessProbe.successThreshold",
				"Forbidden spec.containers[0].readinessProbe",
			}},
		{"extended resource", "containers: [{name: c, image: x, resources: {limits: {example.com/gpu: 2}, requests: {example.com/gpu: 1}}}]",
			[]string{"Invalid spec.containers[0].resources.requests[example.com/gpu]"}},
		{"resources in variables", `
containers:
- name: c
  image: x
  env:
  - {name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
  - {name: B, valueFrom: {resourceFieldRef: {resource: requests.hugepages-2Mi, divisor: 1Mi}}}
  - {name: C, valueFrom: {resourceFieldRef: {resource: requests.ephemeral-storage, divisor: "0", containerName: other}}}
  - {name: D, valueFrom: {resourceFieldRef: {resource: limits.foo, divisor: 3}}}
  - {name: E, valueFrom: {resourceFieldRef: {resource: cpu}}}
  - {name: F, valueFrom: {resourceFieldRef: {divisor: 1}}}
  - {name: G, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1k}}}
  - {name: H, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1m}}}
  - {name: I, valueFrom: {resourceFieldRef: {resource: limits.hugepages-1Gi, divisor: 2Mi}}}`,
			[]string{
				"NotSupported spec.containers[0].env[3].valueFrom.resourceFieldRef.resource",
				"NotSupported spec.containers[0].env[4].valueFrom.resourceFieldRef.resource",
				"Required spec.containers[0].env[5].valueFrom.resourceFieldRef.resource",
				"Invalid spec.containers[0].env[6].valueFrom.resourceFieldRef.divisor",
				"Invalid spec.containers[0].env[7].valueFrom.resourceFieldRef.divisor",
				"Invalid spec.containers[0].env[8].valueFrom.resourceFieldRef.divisor",
			}},
		{"resources in files", c + `
volumes:
- {name: v, downwardAPI: {items: [{path: a, resourceFieldRef: {resource: limits.foo}}, {path: b, resourceFieldRef: {containerName: c, resource: limits.cpu, divisor: 1}}]}}
- {name: w, projected: {sources: [{downwardAPI: {items: [{path: a, resourceFieldRef: {containerName: c, resource: limits.memory, divisor: 1.5}}]}}]}}`,
			[]string{
				"NotSupported spec.volumes[0].downwardAPI.items[0].resourceFieldRef.resource",
				"Required spec.volumes[0].downwardAPI.items[0].resourceFieldRef.containerName",
				"Invalid spec.volumes[1].projected.sources[0].downwardAPI.items[0].resourceFieldRef.divisor",
			}},
		{"sysctls", c + "securityContext: {sysctls: [{name: net.ipv4.ip_forward, value: '1'}, {name: net/ipv4/ip_forward, value: '1'}, {name: 'A B'}]}",
			[]string{"Duplicate spec.securityContext.sysctls[1].name", "Invalid spec.securityContext.sysctls[2].name"}},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, Pod(pod(t, test.spec)), test.want...) })
	}
}

func TestPodUpdate(t *testing.T) {
	const spec = `
activeDeadlineSeconds: 100
tolerations: [{key: a, operator: Exists}]
containers: [{name: c, image: x, args: [a]}]`
	old := pod(t, spec)
	p := pod(t, spec)
	p.Spec.Containers[0].Image = "y"
	p.Spec.ActiveDeadlineSeconds = new(int64(50))
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "b", Operator: corev1.TolerationOpExists})
	expect(t, PodUpdate(p, old))

	p = pod(t, spec)
	p.Spec.Containers[0].Args = []string{"b"}
	p.Spec.NodeName = "elsewhere"
	p.Spec.ActiveDeadlineSeconds = new(int64(200))
	p.Spec.Tolerations = p.Spec.Tolerations[1:]
	errs := PodUpdate(p, old)
	expect(t, errs, "Forbidden spec", "Invalid spec.activeDeadlineSeconds", "Forbidden spec.tolerations")
	if msg := errs.ToAggregate().Error(); !strings.Contains(msg, "changed: spec.containers[0].args[0], spec.nodeName") {
		t.Errorf("the message does not say what was changed: %s", msg)
	}
}

func TestNotServed(t *testing.T) {
	p := pod(t, `
initContainers: [{name: i, image: x}, {name: s, image: x, restartPolicy: Always}, {name: n, image: x, restartPolicy: Never}]
runtimeClassName: gvisor
volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}, {name: b, projected: {sources: [{clusterTrustBundle: {path: t}}, {serviceAccountToken: {path: t}}]}}, {name: c, nfs: {server: s, path: /}}, {name: d, hostPath: {path: /d}}]
containers:
- name: c
  image: x
  livenessProbe: {exec: {command: [a]}}
  volumeDevices: [{name: a, devicePath: /a}]
  env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: C, valueFrom: {fileKeyRef: {volumeName: a, path: p, key: k}}}]
  resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]
  volumeMounts: [{name: a, mountPath: /a, subPathExpr: $(A)}]`)
	refused, warnings := NotServed(&p.Spec, field.NewPath("spec"))
	expect(t, refused,
		"Forbidden spec.initContainers[2].restartPolicy", "Forbidden spec.runtimeClassName", "Forbidden spec.volumes[1].projected.sources",
		"Forbidden spec.volumes[2].nfs", "Forbidden spec.containers[0].volumeDevices",
		"Forbidden spec.containers[0].env[2].valueFrom.fileKeyRef",
	)
	for i, want := range []string{"spec.containers[0].resizePolicy: ", "spec.volumes[0].emptyDir.sizeLimit: "} {
		if i >= len(warnings) || !strings.HasPrefix(warnings[i], want) {
			t.Errorf("warning %d of %q: want %s", i, warnings, want)
		}
	}
	plain := pod(t, "containers: [{name: c, image: x}]")
	if refused, warnings := NotServed(&plain.Spec, field.NewPath("spec")); refused != nil || warnings != nil {
		t.Errorf("a plain pod: %v, %v", refused, warnings)
	}
}

func TestNamesAndGates(t *testing.T) {
	const rest = "\ncontainers: [{name: c, image: x}]"
	for spec, want := range map[string][]string{
		"hostnameOverride: a.b":                        nil,
		"hostnameOverride: A_b":                        {"Invalid spec.hostnameOverride"},
		"hostnameOverride: " + strings.Repeat("a", 65): {"TooLong spec.hostnameOverride"},
		"hostnameOverride: a\nsetHostnameAsFQDN: true": {"Forbidden spec.hostnameOverride"},
		"hostnameOverride: a\nhostNetwork: true":       {"Forbidden spec.hostnameOverride"},
		"schedulingGates: [{name: a}]":                 nil,
		"schedulingGates: [{name: a}, {name: a}]":      {"Duplicate spec.schedulingGates[1]"},
		"schedulingGates: [{name: a}]\nnodeName: n":    {"Forbidden spec.nodeName"},
	} {
		expect(t, Pod(pod(t, spec+rest)), want...)
	}
}

func TestInitContainersAndHooks(t *testing.T) {
	expect(t, Pod(pod(t, `
initContainers:
- {name: a, image: x, livenessProbe: {exec: {command: [a]}}, lifecycle: {preStop: {sleep: {seconds: 1}}}}
- {name: s, image: x, restartPolicy: Always, startupProbe: {exec: {command: [a]}}}
containers:
- {name: c, image: x, lifecycle: {stopSignal: SIGUSR1}}
- {name: d, image: x, lifecycle: {stopSignal: SIGRTMIN+3}}
- {name: e, image: x, lifecycle: {stopSignal: HUP!}}`)),
		"Forbidden spec.initContainers[0].lifecycle", "Forbidden spec.initContainers[0].livenessProbe",
		"Invalid spec.containers[2].lifecycle.stopSignal")
}

func TestObjectMeta(t *testing.T) {
	big := map[string]string{"a": strings.Repeat("x", 257<<10)}
	expect(t, ObjectMeta(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "A", Labels: map[string]string{"a b": "c"}, Annotations: big}}, true),
		"Invalid metadata.name", "Required metadata.namespace", "Invalid metadata.labels", "TooLong metadata.annotations")
	expect(t, ObjectMeta(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a.b", Namespace: "n"}}, true))
	expect(t, ObjectMeta(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a.b"}}, false), "Invalid metadata.name")
	expect(t, ObjectMeta(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "p.17A", Namespace: "n"}}, true))
	expect(t, ObjectMeta(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a/b", Namespace: "n"}}, true), "Invalid metadata.name")

	now := metav1.Now()
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", DeletionTimestamp: &now}}
	obj := old.DeepCopy()
	obj.Finalizers = []string{"example.com/f"}
	expect(t, ObjectMetaUpdate(obj, old, true), "Forbidden metadata.finalizers")
}

func TestConfigs(t *testing.T) {
	c := &corev1.ConfigMap{
		Immutable: new(true), Data: map[string]string{"a": "1", "b/c": "2"}, BinaryData: map[string][]byte{"a": nil},
	}
	expect(t, ConfigMap(c), "Invalid data[a]", "Invalid data[b/c]")
	expect(t, ConfigMap(&corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", maxConfig+1)}}), "TooLong data")
	other := c.DeepCopy()
	other.Immutable, other.Data = nil, nil
	expect(t, ConfigMapUpdate(other, c), "Forbidden immutable", "Forbidden data")
	expect(t, Secret(&corev1.Secret{Type: corev1.SecretTypeTLS}), "Required data[tls.crt]", "Required data[tls.key]")
	expect(t, Secret(&corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{")}}),
		"Invalid data[.dockerconfigjson]")
	expect(t, SecretUpdate(&corev1.Secret{Type: "a"}, &corev1.Secret{Type: "b"}), "Invalid type")
}

func TestClusterKinds(t *testing.T) {
	n := decode[corev1.Node](t, `{spec: {podCIDR: 10.0.0.0/24, podCIDRs: [10.0.1.0/24, x], taints: [{key: a, effect: Now}, {key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]}, status: {capacity: {cpu: -1}}}`)
	expect(t, Node(n), "Invalid spec.podCIDRs[1]", "Invalid spec.podCIDRs[0]", "NotSupported spec.taints[0].effect",
		"Duplicate spec.taints[2]", "Invalid status.capacity[cpu]")
	expect(t, NodeUpdate(&corev1.Node{}, n), "Forbidden spec.podCIDRs")
	expect(t, NamespaceStatusUpdate(&corev1.Namespace{Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}, nil), "Invalid status.phase")
	expect(t, Lease(decode[coordinationv1.Lease](t, `{spec: {leaseDurationSeconds: 0, leaseTransitions: -1, holderIdentity: ""}}`)),
		"Invalid spec.leaseDurationSeconds", "Invalid spec.leaseTransitions", "Required spec.holderIdentity")
	expect(t, Event(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "b"}}),
		"Invalid involvedObject.namespace")
	expect(t, Event(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}))
	expect(t, PodStatusUpdate(decode[corev1.Pod](t, `{status: {phase: Tired, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.2}], conditions: [{type: Ready, status: "Yes"}]}}`), &corev1.Pod{}),
		"NotSupported status.phase", "Invalid status.podIPs[0].ip", "NotSupported status.conditions[0].status")
	expect(t, PodStatusUpdate(decode[corev1.Pod](t, `{status: {podIP: "::%lo"}}`), &corev1.Pod{}), "Invalid status.podIP")
}

// FuzzAll checks that no object, with or without defaults, makes a rule panic.
func FuzzAll(f *testing.F) {
	files, err := filepath.Glob("../../../testdata/dialects/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if raw, err := yaml.YAMLToJSON(manifest); err == nil {
			f.Add(raw)
		}
	}
	f.Add([]byte(`{"spec":{"containers":[{"lifecycle":{"preStop":{}},"livenessProbe":{},"env":[{"valueFrom":{}}],"volumeMounts":[{}]}],"securityContext":{"seccompProfile":{"type":"Localhost"}},"dnsConfig":{"searches":["."]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := &corev1.Pod{}
		if json.Unmarshal(raw, p) == nil {
			run(p, func() {
				Pod(p)
				PodUpdate(p, &corev1.Pod{})
				PodUpdate(&corev1.Pod{}, p)
				PodStatusUpdate(p, &corev1.Pod{})
			})
			_, _ = NotServed(&p.Spec, field.NewPath("spec"))
			defaults.Pod(p)
			Pod(p)
			if errs := PodUpdate(p, p.DeepCopy()); len(errs) > 0 {
				t.Errorf("no change was refused: %v", errs)
			}
		}
		n, s := &corev1.Node{}, &corev1.Secret{}
		if json.Unmarshal(raw, n) == nil {
			run(n, func() { Node(n); NodeUpdate(n, &corev1.Node{}) })
		}
		if json.Unmarshal(raw, s) == nil {
			run(s, func() { Secret(s); SecretUpdate(s, &corev1.Secret{}) })
		}
	})
}

func run(obj api.Object, rules func()) {
	ObjectMeta(obj, true)
	ObjectMetaUpdate(obj, obj, false)
	rules()
}

func TestEphemeralContainers(t *testing.T) {
	const rest = `
volumes: [{name: v, emptyDir: {}}]
initContainers: [{name: i, image: x}]
containers: [{name: c, image: x}]
ephemeralContainers:
`
	good := pod(t, rest+`- {name: d, image: x, targetContainerName: c, stdin: true, tty: true, env: [{name: A, value: b}], volumeMounts: [{name: v, mountPath: /v}]}
- {name: e, image: x, targetContainerName: i, securityContext: {capabilities: {add: [SYS_PTRACE]}}}`)
	expect(t, Pod(good))
	bad := pod(t, rest+`- {name: c, image: x}
- {name: d, image: x, targetContainerName: e, ports: [{containerPort: 1}], resources: {limits: {cpu: 1}}, restartPolicy: Always}
- {name: e, image: x, lifecycle: {preStop: {sleep: {seconds: 1}}}, volumeMounts: [{name: v, mountPath: /v, subPath: a}, {name: w, mountPath: /w}]}
- {name: e}`)
	expect(t, Pod(bad), "Duplicate spec.ephemeralContainers[0].name",
		"NotFound spec.ephemeralContainers[1].targetContainerName", "Forbidden spec.ephemeralContainers[1].ports",
		"Forbidden spec.ephemeralContainers[1].resources", "Forbidden spec.ephemeralContainers[1].restartPolicy",
		"NotFound spec.ephemeralContainers[2].volumeMounts[1].name", "Forbidden spec.ephemeralContainers[2].lifecycle",
		"Forbidden spec.ephemeralContainers[2].volumeMounts[0].subPath",
		"Duplicate spec.ephemeralContainers[3].name", "Required spec.ephemeralContainers[3].image")
	expect(t, PodCreate(good), "Forbidden spec.ephemeralContainers")
	expect(t, PodUpdate(good, pod(t, strings.TrimSuffix(rest, "ephemeralContainers:\n"))), "Forbidden spec")

	turned := good.DeepCopy()
	slices.Reverse(turned.Spec.EphemeralContainers)
	expect(t, PodEphemeralUpdate(turned, good))
	turned.Spec.EphemeralContainers = turned.Spec.EphemeralContainers[:1]
	turned.Spec.EphemeralContainers[0].Image = "y"
	expect(t, PodEphemeralUpdate(turned, good), "Forbidden spec.ephemeralContainers", "Forbidden spec.ephemeralContainers")
}
