package defaults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func decode[T any](t testing.TB, manifest string) *T {
	t.Helper()
	v := new(T)
	if err := yaml.Unmarshal([]byte(manifest), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// equal compares by JSON, which is what is stored.
func equal(t testing.TB, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func TestPod(t *testing.T) {
	pod := decode[corev1.Pod](t, `
spec:
  hostNetwork: true
  tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
  volumes: [{name: a}, {name: b, hostPath: {path: /b}}, {name: c, secret: {secretName: s}}]
  containers:
  - name: c
    image: nginx
    ports: [{containerPort: 80}]
    env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
    resources: {limits: {cpu: 1, memory: 64Mi}, requests: {cpu: 100m}}
    readinessProbe: {httpGet: {port: 80}}`)
	Pod(pod)
	equal(t, pod, decode[corev1.Pod](t, `
spec:
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  terminationGracePeriodSeconds: 30
  schedulerName: default-scheduler
  securityContext: {}
  serviceAccountName: default
  serviceAccount: default
  enableServiceLinks: true
  hostNetwork: true
  tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  volumes:
  - {name: a, emptyDir: {}}
  - {name: b, hostPath: {path: /b, type: ""}}
  - {name: c, secret: {secretName: s, defaultMode: 420}}
  containers:
  - name: c
    image: nginx
    imagePullPolicy: Always
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]
    env: [{name: IP, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIP}}}]
    resources: {limits: {cpu: 1, memory: 64Mi}, requests: {cpu: 100m, memory: 64Mi}}
    readinessProbe:
      httpGet: {path: /, port: 80, scheme: HTTP}
      timeoutSeconds: 1
      periodSeconds: 10
      successThreshold: 1
      failureThreshold: 3`))
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"nginx":                             corev1.PullAlways,
		"nginx:latest":                      corev1.PullAlways,
		"nginx:1.0":                         corev1.PullIfNotPresent,
		"localhost:5000/nginx":              corev1.PullAlways,
		"localhost:5000/nginx:1":            corev1.PullIfNotPresent,
		"nginx@sha256:0123456789abcdef":     corev1.PullIfNotPresent,
		"nginx:1@sha256:0123456789abcdef":   corev1.PullIfNotPresent,
		"h:5000/nginx@sha256:0123456789abc": corev1.PullIfNotPresent,
		"":                                  corev1.PullAlways,
	} {
		if got := PullPolicy(image); got != want {
			t.Errorf("%q: got %s, want %s", image, got, want)
		}
	}
}

func TestNamespace(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	Namespace(ns)
	if ns.Labels["kubernetes.io/metadata.name"] != "a" || len(ns.Spec.Finalizers) != 1 || ns.Status.Phase != corev1.NamespaceActive {
		t.Errorf("%+v", ns)
	}
	going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", DeletionTimestamp: &metav1.Time{}}}
	if Namespace(going); len(going.Spec.Finalizers) != 0 {
		t.Error("a namespace that is going got its finalizer back")
	}
}

func TestSecret(t *testing.T) {
	s := &corev1.Secret{Data: map[string][]byte{"a": []byte("1"), "b": []byte("2")}, StringData: map[string]string{"b": "3"}}
	Secret(s)
	want := &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": []byte("1"), "b": []byte("3")}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestNode(t *testing.T) {
	n := decode[corev1.Node](t, `{spec: {podCIDR: 10.244.1.0/24}, status: {capacity: {cpu: 2}}}`)
	Node(n)
	equal(t, n, decode[corev1.Node](t, `{spec: {podCIDR: 10.244.1.0/24, podCIDRs: [10.244.1.0/24]}, status: {capacity: {cpu: 2}, allocatable: {cpu: 2}}}`))
}

// FuzzTwice checks that filling in an object twice is the same as once.
func FuzzTwice(f *testing.F) {
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
	f.Add([]byte(`{"metadata":{"name":"a"},"data":{"a":"MQ=="},"stringData":{"b":"2"}}`))
	f.Add([]byte(`{"spec":{"volumes":[{"name":"a"},{"projected":{"sources":[{},{"serviceAccountToken":{}},{"downwardAPI":{"items":[{"fieldRef":{}}]}}]}}],` +
		`"ephemeralContainers":[{"name":"e"}],"containers":[{"lifecycle":{"preStop":{"httpGet":{}}},"startupProbe":{"grpc":{}}}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		twice(t, raw, Pod)
		twice(t, raw, Namespace)
		twice(t, raw, Node)
		twice(t, raw, Secret)
	})
}

func twice[T any](t *testing.T, raw []byte, fill func(*T)) {
	t.Helper()
	once, again := new(T), new(T)
	if json.Unmarshal(raw, once) != nil || json.Unmarshal(raw, again) != nil {
		return
	}
	fill(once)
	fill(again)
	fill(again)
	equal(t, again, once)
}
