package dialect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
)

const manifests = "../../../testdata/dialects"

// parse reads a manifest as the API server does: numbers stay as they are written.
func parse(t testing.TB, manifest []byte) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return parseJSON(t, raw)
}

func parseJSON(t testing.TB, raw []byte) map[string]any {
	t.Helper()
	var doc map[string]any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// same compares two documents as JSON, in which a number has only one form.
func same(t testing.TB, got, want map[string]any) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if got := parseJSON(t, raw); !reflect.DeepEqual(got, want) {
		w, _ := json.Marshal(want)
		t.Errorf("got\n%s\nwant\n%s", raw, w)
	}
}

func TestSeeds(t *testing.T) {
	tests := []struct {
		file  string
		kind  *api.Kind
		notes []string // the path of each
		want  string
	}{
		{"x-node", api.Nodes, []string{"apiVersion", "metadata.namespace", "ip"}, `
apiVersion: v1
kind: Node
metadata: {name: node, annotations: {minik8s.io/node-ip: 0.0.0.0}}`},
		{"a-node", api.Nodes, nil, ""},
		{"x-pod", api.Pods, nil, ""},
		{"a-pod", api.Pods, []string{
			"spec.restartPolicy", "spec.containers[0].imagePullPolicy", "spec.containers[0].env[0].value",
			"spec.containers[1].imagePullPolicy",
		}, `
apiVersion: v1
kind: Pod
metadata: {name: succeed-failure, namespace: default, labels: {app: myapp, tier: frontend}}
spec:
  restartPolicy: OnFailure
  containers:
  - name: notice-server
    image: lwsg/notice-server
    imagePullPolicy: IfNotPresent
    ports: [{containerPort: 80, protocol: TCP}]
    env: [{name: _NOTICE, value: "1"}]
  - name: timer
    image: "ubuntu:bionic"
    imagePullPolicy: IfNotPresent
    command: [sleep]
    args: [30s]
    resources: {limits: {cpu: 100m, memory: 200M}}`},
		{"a-pod-anti-affinity", api.Pods, []string{
			"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]",
		}, `
apiVersion: v1
kind: Pod
metadata: {name: tiny, labels: {scheduleAntiAffinity: tiny}}
spec:
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {scheduleAntiAffinity: tiny}}
  containers: [{name: c, image: nginx}]`},
		{"a-pod-shared-volume", api.Pods, []string{"spec.volumes"}, `
apiVersion: v1
kind: Pod
metadata: {name: share}
spec:
  containers:
  - {name: writer, image: nginx, volumeMounts: [{name: share, mountPath: /share}]}
  - {name: reader, image: nginx, volumeMounts: [{name: share, mountPath: /share}]}
  volumes: [{name: share, emptyDir: {}}]`},
		{"x-pod-other-fields", api.Pods, []string{
			"apiVersion", "name", "namespace", "spec.clusterIp", "spec.containers[0].cmd", "spec.containers[0].env[0].value",
			"spec.containers[0].ports[0].containerPort", "spec.containers[0].ports[0].hostPort",
			"spec.containers[0].ports[0].protocol", "spec.containers[0].resources.cpu", "spec.containers[0].resources.memory",
			"spec.containers[0].lifecycle.postStart.exec.cmd", "spec.containers[0].livenessProbe.httpGet.port",
		}, `
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: default}
spec:
  nodeSelector: {os: linux}
  containers:
  - name: c
    image: nginx
    command: [sleep, "30"]
    tty: true
    env: [{name: DEBUG, value: "true"}]
    ports: [{containerPort: 80, hostPort: 8080, protocol: TCP, hostIP: 127.0.0.1}]
    resources: {limits: {cpu: 100m, memory: 200Mi}}
    lifecycle: {postStart: {exec: {command: ["true"]}}}
    livenessProbe: {httpGet: {path: /, port: 80}}`},
		{"a-replicaset", api.ReplicaSets, nil, ""},
		{"x-replicaset", api.ReplicaSets, []string{"apiVersion", "spec.selector"}, `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: rs, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: myApp}}
  template:
    metadata: {labels: {app: myApp}}
    spec: {containers: [{name: fileserver, image: "dplsming/nginx-fileserver:1.0", ports: [{containerPort: 80}]}]}`},
		{"x-replicaset-no-labels", api.ReplicaSets, []string{
			"apiVersion", "spec.template.spec.containers[0].imagePullPolicy", "spec.selector",
		}, `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: bare}
spec:
  replicas: 2
  selector: {matchLabels: {minik8s.io/replicaset: bare}}
  template:
    metadata: {labels: {minik8s.io/replicaset: bare}}
    spec: {containers: [{name: c, image: nginx, imagePullPolicy: IfNotPresent}]}`},
		{"x-dns", api.DNSes, []string{"apiVersion"}, `
apiVersion: minik8s.io/v1
kind: DNS
metadata: {name: nginx-dns, namespace: default}
spec:
  host: test.nginx
  paths:
  - {path: /nginx/, service: {name: nginx-service, port: 8080}}
  - {path: /not-nginx/, service: {name: not-nginx-service, port: 8000}}`},
		{"a-dns", api.DNSes, []string{"apiVersion", "name", "spec.hostname", "spec.mappings"}, `
apiVersion: minik8s.io/v1
kind: DNS
metadata: {name: dns-test}
spec:
  serviceAddress: 10.8.0.1
  host: hello.world.minik8s
  paths:
  - {path: /world, address: "http://10.6.1.1:80"}
  - {path: /new/world, address: "http://10.6.1.2:80"}`},
		{"x-hpa", api.HorizontalPodAutoscalersV1, []string{
			"spec.scaleTargetRef.metadata", "spec.scaleTargetRef.apiVersion", "metadata.annotations[autoscaling.alpha.kubernetes.io/behavior]",
			"spec.scaleInterval", "spec", "spec.metrics.CPUUtilizationPercentage",
		}, `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata:
  name: hpa
  namespace: default
  annotations:
    minik8s.io/sync-period: 10s
    minik8s.io/utilization-basis: capacity
    autoscaling.alpha.kubernetes.io/behavior: '{"scaleDown":{"policies":[{"periodSeconds":10,"type":"Pods","value":1}],"selectPolicy":"Max","stabilizationWindowSeconds":0},"scaleUp":{"policies":[{"periodSeconds":10,"type":"Pods","value":1}],"selectPolicy":"Max","stabilizationWindowSeconds":0}}'
spec:
  minReplicas: 1
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: rs}
  targetCPUUtilizationPercentage: 25`},
		{"a-hpa", api.HorizontalPodAutoscalersV2beta2, []string{"apiVersion"}, `
apiVersion: autoscaling/v2beta2
kind: HorizontalPodAutoscaler
metadata: {name: hpa-practice-cpu-policy-scale-up, annotations: {minik8s.io/utilization-basis: requests-or-capacity}}
spec:
  minReplicas: 3
  maxReplicas: 6
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 20}}}
  - {type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 20}}}
  scaleTargetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: myapp-replicas}
  behavior: {scaleUp: {selectPolicy: Max, stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 1, periodSeconds: 15}]}}`},
		{"x-gpujob", api.GpuJobs, []string{"apiVersion", "spec.numProcess", "spec.numTasksPerNode", "spec.numGpus", "spec.volume"}, `
apiVersion: minik8s.io/v1
kind: GpuJob
metadata: {name: matrix-ops, namespace: default}
spec:
  nodes: 1
  tasksPerNode: 1
  cpusPerTask: 6
  gpusPerNode: 1
  compileScripts: [module load cuda/9.2.88-gcc-4.8.5, nvcc matrix/matrix_add.cu -o matrix/matrix_add, nvcc matrix/matrix_multiply.cu -o matrix/matrix_multiply]
  runScripts: [module load cuda/9.2.88-gcc-4.8.5, ./matrix/matrix_add, ./matrix/matrix_multiply]
  sources: {folder: /root/gpu}
  outputFile: matrix_op.out
  errorFile: matrix_op.err
  username: stu001
  password: the-Password-of-stu001
  workDir: matrix`},
		{"a-gpujob", api.GpuJobs, []string{
			"kind", "spec.resultFilePath", "spec.args.numTasksPerNode", "spec.args.cpusPerTask", "spec.args.mail", "spec.args",
			"spec.cuFilePath", "spec.resultFileName", "spec.resultFileName", "spec.cuFilePath", "spec.cuFilePath", "spec.resultFileName",
			"spec.nodes", "spec.gpusPerNode",
		}, `
apiVersion: minik8s.io/v1
kind: GpuJob
metadata: {name: matrix-sum, namespace: default}
spec:
  sources: {file: 'D:\SJTU\Minik8s\minik8s\pkg\gpu\cuda\sum_matrix\sum_matrix.cu'}
  resultPath: D:\SJTU\Minik8s\minik8s\pkg\gpu\cuda\sum_matrix
  modules: [gcc/8.3.0, cuda/10.1.243-gcc-8.3.0]
  compileScripts: [nvcc sum_matrix.cu -o sum_matrix -lcublas]
  runScripts: ["ulimit -s unlimited || :", "ulimit -l unlimited || :", ./sum_matrix]
  outputFile: sum_matrix.out
  errorFile: sum_matrix.err
  nodes: 1
  tasksPerNode: 1
  cpusPerTask: 2
  gpusPerNode: 1
  mail: {to: albus_tan@sjtu.edu.cn, types: [ALL]}`},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			manifest, err := os.ReadFile(filepath.Join(manifests, test.file+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			doc := parse(t, manifest)
			want := parse(t, manifest)
			if test.want != "" {
				want = parse(t, []byte(test.want))
			}
			notes, err := For(test.kind)(doc)
			if err != nil {
				t.Fatal(err)
			}
			same(t, doc, want)
			var paths []string
			for _, n := range notes {
				path, _, _ := strings.Cut(n, ": ")
				paths = append(paths, path)
			}
			if !reflect.DeepEqual(paths, test.notes) {
				t.Errorf("notes %q, want those of %q", notes, test.notes)
			}
			if again, err := For(test.kind)(doc); err != nil || again != nil {
				t.Errorf("a canonical manifest was rewritten again: %q, %v", again, err)
			}
		})
	}
}

func TestKindsWithoutDialect(t *testing.T) {
	if For(api.ConfigMaps) != nil || For(api.Leases) != nil {
		t.Error("a kind that the seeds do not have has a dialect")
	}
}

func TestContradictions(t *testing.T) {
	for manifest, want := range map[string]string{
		`{"kind":"Pod","name":"a","metadata":{"name":"b"}}`:                        `name: it is "a" here and "b" in metadata`,
		`{"kind":"Node","ip":"10.0.0.1","spec":{"address":"10.0.0.2"}}`:            "spec.address: the node's address is 10.0.0.2 here and 10.0.0.1 elsewhere",
		`{"kind":"Node","ip":"10.0.0.1","spec":{"address":"10.0.0.1"},"name":"n"}`: "",
		`{"kind":"DNS","spec":{"host":"a.b","hostname":"c.d"}}`:                    "spec.hostname: it is c.d here and a.b in spec.host",
		`{"kind":"DNS","spec":{"host":"a.b","hostname":"a.b","mappings":[]}}`:      "",
		`{"kind":"GpuJob","spec":{"numGpus":1,"gpusPerNode":2}}`:                   "spec.numGpus: it is 1 here and 2 in spec.gpusPerNode",
		`{"kind":"GpuJob","spec":{"volume":"a","sources":{"folder":"b"}}}`:         "spec.volume: it means spec.sources.folder: a, and that is b in the manifest",
		`{"kind":"GpuJob","spec":{"args":{"cpusPerTask":1},"cpusPerTask":1}}`:      "",
		`{"kind":"GpuJob","spec":{"password":123456}}`:                             "spec.password: expected a string: write it in quotes",
		`{"kind":"GpuJob","spec":{"username":["a","s3cret"]}}`:                     "spec.username: expected a string: write it in quotes",
		`{"kind":"Job","spec":{"cuFilePath":"a.cu"}}`:                              "spec.cuFilePath: this is a GPU job, a GpuJob of minik8s.io/v1: it goes to /apis/minik8s.io/v1/namespaces/NAMESPACE/gpujobs; minik8sd ctl apply sends it there as it is, and kubectl with apiVersion: minik8s.io/v1 and kind: GpuJob in the manifest",
	} {
		doc := parseJSON(t, []byte(manifest))
		kind := api.ByWord(doc["kind"].(string))
		_, err := For(kind)(doc)
		if got := message(err); got != want {
			t.Errorf("%s: got %q, want %q", manifest, got, want)
		}
	}
}

// TestPatched checks that in a patched object the words of the patch replace the values beside them.
func TestPatched(t *testing.T) {
	const c = `{"kind":"Pod","apiVersion":"v1","spec":{"containers":[%]}}`
	const rs = `{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"name":"r"},"spec":%}`
	const anti = `{"kind":"Pod","apiVersion":"v1","spec":{"affinity":{"podAntiAffinity":{%}}}}`
	wish := `"` + soft + `":[{"weight":100,"podAffinityTerm":{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"a":"b"}}}}]`
	for _, x := range []struct{ name, in, doc, want string }{
		{"nothing to read", c, `{"command":["old"]}`, `{"command":["old"]}`},
		{"a command", c, `{"command":["old"],"cmd":["new"]}`, `{"command":["new"]}`},
		{"resources", c, `{"resources":{"cpu":1,"limits":{"cpu":2,"memory":3}}}`, `{"resources":{"limits":{"cpu":1,"memory":3}}}`},
		{"the same wish", anti, wish + `,"` + hard + `":[{"labelSelector":{"matchLabels":{"a":"b"}}}]`, wish},
		{"a selector", rs, `{"selector":{"a":"new","matchLabels":{"a":"old"}},"template":{}}`, `{"selector":{"matchLabels":{"a":"new"}},"template":{}}`},
		{"our own selector", rs, `{"selector":{"matchLabels":{"minik8s.io/replicaset":"r"}},"template":{"metadata":null}}`,
			`{"selector":{"matchLabels":{"minik8s.io/replicaset":"r"}},"template":{"metadata":{"labels":{"minik8s.io/replicaset":"r"}}}}`},
		{"our own selector, and labels", rs, `{"selector":{"matchLabels":{"minik8s.io/replicaset":"r"}},"template":{"metadata":{"labels":{"a":"b"}}}}`,
			`{"selector":{"matchLabels":{"minik8s.io/replicaset":"r"}},"template":{"metadata":{"labels":{"a":"b"}}}}`},
		{"another's selector", rs, `{"selector":{"matchLabels":{"minik8s.io/replicaset":"other"}},"template":{}}`,
			`{"selector":{"matchLabels":{"minik8s.io/replicaset":"other"}},"template":{}}`},
	} {
		t.Run(x.name, func(t *testing.T) {
			doc, want := parseJSON(t, []byte(strings.Replace(x.in, "%", x.doc, 1))), parseJSON(t, []byte(strings.Replace(x.in, "%", x.want, 1)))
			kind := api.Pods
			if x.in == rs {
				kind = api.ReplicaSets
			}
			notes, err := Patched(kind)(doc)
			if err != nil {
				t.Fatal(err)
			}
			same(t, doc, want)
			if (notes == nil) != (x.doc == x.want) {
				t.Errorf("notes %q", notes)
			}
		})
	}
	doc := parseJSON(t, []byte(`{"kind":"Node","apiVersion":"v1","metadata":{"annotations":{"minik8s.io/node-ip":"10.0.0.1"}},"ip":"10.0.0.2"}`))
	if _, err := Patched(api.Nodes)(doc); err != nil || object(object(doc["metadata"])["annotations"])[NodeIP] != "10.0.0.2" {
		t.Errorf("%v, %v", doc, err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestIdentify(t *testing.T) {
	for manifest, want := range map[string]string{
		`{"kind":"Pod"}`:                           "v1 Pod ",
		`{"kind":"pod","apiVersion":"v1"}`:         "v1 Pod ",
		`{"kind":"Pod","apiVersion":"/api/v1"}`:    "v1 Pod ",
		`{"kind":"Lease","apiVersion":"/api/v1"}`:  "coordination.k8s.io/v1 Lease ",
		`{"kind":"Lease"}`:                         "coordination.k8s.io/v1 Lease ",
		`{"kind":"Pod","apiVersion":"apps/v9"}`:    ` apiVersion: "apps/v9" is not served for kind Pod; use v1`,
		`{"kind":"Pod","apiVersion":1}`:            ` apiVersion: expected a string`,
		`{"kind":"Spaceship","apiVersion":"v1"}`:   ` kind: "Spaceship" is not served; this version of minik8s serves Namespace (v1), Node (v1), Pod (v1)`,
		`{"apiVersion":"v1"}`:                      ` kind: required; this version of minik8s serves Namespace (v1)`,
		`{"kind":["Pod"],"metadata":{"name":"a"}}`: ` kind: required`,
	} {
		apiVersion, kind, err := Identify(parseJSON(t, []byte(manifest)))
		got := strings.TrimSpace(apiVersion+" "+kind) + " " + message(err)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", manifest, got, want)
		}
	}
}

func FuzzDialect(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatal("no manifests", err)
	}
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		raw, err := yaml.YAMLToJSON(manifest)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, s := range []string{
		`{"kind":"Pod","metadata":[],"name":"a","spec":{"containers":{"a":1}}}`,
		`{"kind":"Pod","spec":{"containers":[null,1,"a",{"env":[null,{"value":{}}],"ports":[[]],"resources":[],"volumeMounts":[{"name":7}]}],"volumes":"none"}}`,
		`{"kind":"Pod","spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[null,{"topologyKey":1},{}]}}}}`,
		`{"kind":"Node","ip":1,"metadata":{"annotations":[]},"spec":"x"}`,
		`{"kind":"Namespace","apiVersion":{},"namespace":"a"}`,
		`{"kind":"Job","spec":{"cuFilePath":7,"resultFileName":[],"args":{"mail":{"type":1},"gpuResources":{}},"sources":"x","volume":{}}}`,
		`{"kind":"GpuJob","spec":{"cuFilePath":"","args":[],"sources":[],"password":{},"numGpus":null}}`,
		`{"kind":"HorizontalPodAutoscaler","spec":{"scaleInterval":[],"metrics":{"CPUUtilizationPercentage":{}},"scaleTargetRef":{"metadata":1}},"metadata":{"annotations":[]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, kind := range []*api.Kind{api.Pods, api.Nodes, api.Namespaces, api.ReplicaSets, api.Jobs, api.HorizontalPodAutoscalers,
			api.HorizontalPodAutoscalersV1, api.HorizontalPodAutoscalersV2beta2} {
			var patched map[string]any
			if json.Unmarshal(raw, &patched) == nil {
				_, _ = Patched(kind)(patched)
			}
			var doc, before map[string]any
			if json.Unmarshal(raw, &doc) != nil || json.Unmarshal(raw, &before) != nil {
				return
			}
			notes, err := For(kind)(doc)
			if notes == nil && err == nil && !reflect.DeepEqual(doc, before) {
				t.Errorf("%s was changed without a note", raw)
			}
			if _, err := json.Marshal(doc); err != nil {
				t.Errorf("%s cannot be written any more: %v", raw, err)
			}
			_, _, _ = Identify(doc)
		}
	})
}
