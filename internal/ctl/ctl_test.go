package ctl

import (
	"io"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/ctl/exit"
)

func pod(ns, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "demo:1"}}},
	}
}

func node(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestGet(t *testing.T) {
	f := newFake(t, pod("default", "web"), pod("default", "db-with-a-long-name"), pod("prod", "web"), node("n1", nil))
	golden(t, "get-pods.txt", f.ctl("", "get", "PODS").out)
	golden(t, "get-all-namespaces.txt", f.ctl("", "get", "po", "-A").out)
	golden(t, "get-several.txt", f.ctl("", "get", "pods,nodes", "-n", "prod").out)
	if got := f.ctl("", "get", "pods", "-o", "name", "-A").out; got != "pod/db-with-a-long-name\npod/web\npod/web\n" {
		t.Errorf("-o name: %q", got)
	}
	uid := string(f.get("/api/v1/namespaces/prod/pods/web").GetUID())
	for _, args := range [][]string{
		{"get", "pod", uid, "-o", "yaml"}, {"get", "pod", "prod/web", "-o", "yaml"}, {"get", "pod/web", "-n", "prod", "-o", "yaml"},
	} {
		if got := f.ctl("", args...).out; !strings.Contains(got, "namespace: prod") {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := f.ctl("", "get", "pods", "-n", "empty"); got.out != "" || got.code != 0 || !strings.Contains(got.err, "no pods found in namespace empty") {
		t.Errorf("an empty namespace: %+v", got)
	}
	for _, call := range f.calls {
		if call == "GET /api" || call == "GET /apis" {
			t.Error("discovery was asked, although the table of kinds answers")
		}
	}
}

func TestRefusals(t *testing.T) {
	f := newFake(t, pod("default", "web"), pod("prod", "db"))
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"get pod wbe", `pod "wbe" not found in namespace "default"; did you mean web?`, exit.NotFound},
		{"get pod db", "there is one in namespace prod: add -n prod", exit.NotFound},
		{"get pdos", `there is no kind "pdos". Did you mean pods`, exit.Usage},
		{"get pods -o fancy", "-o fancy is not known", exit.Usage},
		{"get pods --nonsense", "nonsense", exit.Usage},
		{"gte pods", `there is no command "gte"; did you mean get`, exit.Usage},
		{"delete pod", "which pod? Give a name", exit.Usage},
		{"apply", "which file?", exit.Usage},
		{"apply -f nowhere.yaml", "there is no such file or folder", exit.Failed},
		{"image shrink", `there is no command "shrink"`, exit.Usage},
		{"clear", "say --yes", exit.Usage},
		{"label nodes n1", "what shall be set", exit.Usage},
	} {
		got := f.ctl("", strings.Fields(c.args)...)
		if got.code != c.code || !strings.Contains(got.text, c.want) {
			t.Errorf("%s: code %d, %q; want %d, %q", c.args, got.code, got.text, c.code, c.want)
		}
	}
}

const webManifest = `apiVersion: v1
kind: Pod
metadata:
  name: web
  labels:
    app: web
    tier: front
spec:
  containers:
  - name: app
    image: demo:1
`

func TestApply(t *testing.T) {
	f := newFake(t)
	const path = "/api/v1/namespaces/default/pods/web"
	step := func(what, stdin, want string) {
		t.Helper()
		if got := f.ctl(stdin, "apply", "-f", "-"); got.out != want || got.code != 0 {
			t.Fatalf("%s: %+v, want %q", what, got, want)
		}
	}
	if got := f.ctl(webManifest, "apply", "-f", "-", "--dry-run"); !strings.HasPrefix(got.out, "pod/web created (dry run") || f.get(path) != nil {
		t.Fatalf("dry run: %+v", got)
	}
	step("the first", webManifest, "pod/web created\n")
	step("the same", webManifest, "pod/web unchanged\n")
	// A label that others set stays; one that the webManifest no longer has is removed.
	f.ctl("", "label", "pod", "web", "other=yes")
	step("a label less", strings.Replace(webManifest, "    tier: front\n", "", 1), "pod/web configured\n")
	labels := f.get(path).GetLabels()
	if labels["app"] != "web" || labels["other"] != "yes" || labels["tier"] != "" {
		t.Errorf("labels are %v", labels)
	}
	if !strings.Contains(f.get(path).GetAnnotations()[corev1.LastAppliedConfigAnnotation], `"app":"web"`) {
		t.Errorf("what was applied is not kept: %v", f.get(path).GetAnnotations())
	}
	if got := f.ctl(webManifest, "create", "-f", "-"); got.code != exit.Conflict || !strings.Contains(got.text, "exists already") {
		t.Errorf("create: %+v", got)
	}
	if got := f.ctl(webManifest, "apply", "node", "-f", "-"); got.code != exit.Usage || !strings.Contains(got.text, "it is a Pod, where Node was said") {
		t.Errorf("a wrong word: %+v", got)
	}
	if got := f.ctl(webManifest+"---\n"+strings.Replace(webManifest, "name: web", "name: two", 1), "apply", "-f", "-"); !strings.Contains(got.out, "pod/two created") {
		t.Errorf("two documents: %+v", got)
	}
}

func TestDelete(t *testing.T) {
	f := newFake(t, pod("default", "web"), pod("default", "db"), pod("prod", "web"))
	if got := f.ctl("", "delete", "pod", "web", "nothere"); got.out != "pod \"web\" deleted\n" || got.code != exit.NotFound {
		t.Errorf("%+v", got)
	}
	if got := f.ctl("", "del", "pods", "--all", "-A"); got.code != 0 || strings.Count(got.out, "deleted") != 2 {
		t.Errorf("--all -A: %+v", got)
	}
	f = newFake(t, pod("default", "web"), pod("kube-system", "dns"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod"}})
	if got := f.ctl("", "reset", "--yes"); got.code != 0 || got.out != "pod/web deleted\nnamespace/prod deleted\n" {
		t.Errorf("reset: %+v", got)
	}
	f = newFake(t)
	bodies := 0
	for _, args := range [][]string{{"delete", "job", "sum"}, {"reset", "--yes"}} { // also of a kind that does not delete its pods by default
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sum"}}
		f.put(pathOf(job), job)
		f.routes["DELETE "+pathOf(job)] = func(w http.ResponseWriter, r *http.Request) {
			if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"propagationPolicy":"Background"`) {
				bodies++
			}
			delete(f.objects, r.URL.Path)
			reply(w, http.StatusOK, job)
		}
		if got := f.ctl("", args...); got.code != 0 {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if bodies != 2 {
		t.Errorf("%d of 2 deletions say that dependents go too", bodies)
	}
}

func TestLabelAndCordon(t *testing.T) {
	f := newFake(t, node("n1", map[string]string{"os": "linux"}))
	if got := f.ctl("", "label", "nodes", "n1", "os=plan9", "disk=ssd"); got.code != exit.Conflict || got.out != "node/n1 labeled\n" ||
		!strings.Contains(got.text, "has os=linux already, which was kept; --overwrite changes it") {
		t.Errorf("%+v", got)
	}
	f.ctl("", "label", "nodes", "n1", "os=plan9", "disk-", "-o")
	if l := f.get("/api/v1/nodes/n1").GetLabels(); l["os"] != "plan9" || len(l) != 1 {
		t.Errorf("labels are %v", l)
	}
	f.ctl("", "cordon", "n1")
	if n := f.get("/api/v1/nodes/n1").(*corev1.Node); !n.Spec.Unschedulable {
		t.Error("not cordoned")
	}
	if got := f.ctl("", "cordon", "n1"); got.out != "node/n1 already cordoned\n" {
		t.Errorf("%+v", got)
	}
}

func TestLogs(t *testing.T) {
	two := pod("default", "two")
	two.Spec.Containers = append(two.Spec.Containers, corev1.Container{Name: "side"})
	f := newFake(t, pod("default", "web"), two)
	f.logs["web?container=app&tailLines=5"] = "hello\n"
	if got := f.ctl("", "logs", "web", "--tail", "5"); got.out != "hello\n" || got.code != 0 {
		t.Errorf("%+v", got)
	}
	if got := f.ctl("", "logs", "two"); got.code != exit.Usage || !strings.Contains(got.text, "pod two has 2 containers: choose one with -c: app, side") {
		t.Errorf("%+v", got)
	}
}

func TestDescribeHidesSecrets(t *testing.T) {
	f := newFake(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":"hunter2"}`}},
		Data:       map[string][]byte{"password": []byte("hunter2")},
	})
	got := f.ctl("", "describe", "secret", "db").out
	if strings.Contains(got, "hunter2") || strings.Contains(got, "aHVudGVyMg") || !strings.Contains(got, "password:  7 bytes") {
		t.Errorf("%s", got)
	}
}

func TestImages(t *testing.T) {
	f := newFake(t, node("n1", nil))
	const path = "/minik8s/v1/nodes/n1/images"
	f.routes["GET "+path] = func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"items":[{"id":"sha256:0123456789abcdef","tags":["demo:1"],"size":3145728}]}`)
	}
	f.routes["POST "+path] = func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"ref":"demo:2","done":1,"total":2}` + "\n" + `{"error":"no such image"}` + "\n"))
	}
	golden(t, "image-list.txt", f.ctl("", "image", "list").out)
	if got := f.ctl("", "image", "pull", "demo:2"); got.code != exit.Failed || !strings.Contains(got.text, "no such image") {
		t.Errorf("%+v", got)
	}
}
