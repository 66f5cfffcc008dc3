package ctl

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api/minik8s"
)

func metaOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

// ctl takes both seeds' GPU jobs, and shows them under every word of the seeds.
func TestGpuJobs(t *testing.T) {
	f := newFake(t)
	if got := f.ctl("", "get", "jobs"); got.code != 0 || !strings.Contains(got.err, "no jobs found") {
		t.Errorf("%+v", got)
	}
	for _, args := range []string{"apply -f ../../testdata/dialects/a-gpujob.yaml", "create job -f ../../testdata/dialects/x-gpujob.yaml"} {
		if got := f.ctl("", strings.Fields(args)...); got.code != 0 || !strings.Contains(got.out, "created") {
			t.Fatalf("%s: %+v", args, got)
		}
	}
	const path = "/apis/minik8s.io/v1/namespaces/default/gpujobs/"
	j := f.get(path + "matrix-sum").(*minik8s.GpuJob)
	if j.Spec.OutputFile != "sum_matrix.out" || j.Spec.GPUsPerNode != 1 || j.Spec.Mail.To != "albus_tan@sjtu.edu.cn" {
		t.Errorf("%+v", j.Spec)
	}
	if got := f.ctl("", "apply", "-f", "../../testdata/dialects/a-gpujob.yaml"); got.code != 0 || !strings.Contains(got.out, "unchanged") {
		t.Errorf("%+v", got)
	}
	f.put("/apis/minik8s.io/v1/namespaces/default/slurmclusters/hpc", &minik8s.SlurmCluster{ObjectMeta: metaOf("hpc"),
		Spec: minik8s.SlurmClusterSpec{SSHHost: minik8s.SSHHost{Host: "login.example", Port: 22}},
		Status: minik8s.SlurmClusterStatus{PresentedKeys: []minik8s.PresentedKey{{Host: "login.example:22", Fingerprint: "SHA256:abc"}},
			Conditions: []metav1.Condition{{Type: "Connected", Status: "False", Reason: "HostKeyUnknown", Message: "compare it"}}}})
	// Without batch Jobs they have the words to themselves.
	for _, word := range []string{"gpu", "gpus", "GpuJob", "gpujobs", "gpujobs.minik8s.io", "job", "jobs", "j", "J"} {
		if got := f.ctl("", "get", word); got.code != 0 || !strings.Contains(got.out, "matrix-sum") || !strings.Contains(got.out, "\nmatrix-ops") && !strings.HasPrefix(got.out, "matrix-ops") {
			t.Errorf("%s: %+v", word, got)
		}
	}
	for _, word := range []string{"jobs.batch", "all"} {
		if got := f.ctl("", "get", word); strings.Contains(got.out, "matrix") {
			t.Errorf("%s: %+v", word, got)
		}
	}
	if got := f.ctl("", "get", "job", "matrix-sum"); got.code != 0 || !strings.Contains(got.out, "matrix-sum") {
		t.Errorf("%+v", got)
	}
	// Beside a batch Job.
	f.put("/apis/batch/v1/namespaces/default/jobs/pi", &batchv1.Job{ObjectMeta: metaOf("pi")})
	for _, command := range []string{"get job", "get jobs -o name", "get j -A", "get jobs,gpu", "describe jobs"} {
		got := f.ctl("", strings.Fields(command)...)
		if got.code != 0 || strings.Count(got.out, "pi") != 1 && !strings.HasPrefix(command, "describe") || !strings.Contains(got.out, "pi") || !strings.Contains(got.out, "matrix-sum") || !strings.Contains(got.out, "matrix-ops") {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if got := f.ctl("", "get", "jobs", "-w"); got.code == 0 || !strings.Contains(got.text, "-w follows one kind") {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"pi", "matrix-ops"} {
		if got := f.ctl("", "get", "job", name, "-o", "name"); got.code != 0 || !strings.HasSuffix(strings.TrimSpace(got.out), "/"+name) {
			t.Errorf("%s: %+v", name, got)
		}
		if got := f.ctl("", "get", "j/"+name, "-o", "name"); got.code != 0 || !strings.HasSuffix(strings.TrimSpace(got.out), "/"+name) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := f.ctl("", "get", "job", "nowhere"); got.code == 0 || !strings.Contains(got.text, `job "nowhere" not found`) {
		t.Errorf("%+v", got)
	}
	// Who deletes all Jobs means Kubernetes' Jobs; who names one may mean either, but not both.
	if got := f.ctl("", "delete", "jobs", "--all"); got.code != 0 || strings.Contains(got.out, "matrix") || f.get(path+"matrix-ops") == nil {
		t.Errorf("%+v", got)
	}
	f.put("/apis/batch/v1/namespaces/default/jobs/matrix-ops", &batchv1.Job{ObjectMeta: metaOf("matrix-ops")})
	if got := f.ctl("", "del", "job", "matrix-ops"); got.code == 0 || !strings.Contains(got.text, "say jobs.batch matrix-ops or gpujobs.minik8s.io matrix-ops") {
		t.Errorf("%+v", got)
	}
	for _, command := range []string{"del jobs.batch matrix-ops", "del job matrix-ops", "del gpu matrix-sum"} {
		if got := f.ctl("", strings.Fields(command)...); got.code != 0 {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if f.get(path+"matrix-ops") != nil || f.get(path+"matrix-sum") != nil {
		t.Error("a GPU job is left")
	}
	got := f.ctl("", "describe", "slurm", "hpc").out
	for _, want := range []string{"login.example, port 22", "SHA256:abc", "HostKeyUnknown", "compare it"} {
		if !strings.Contains(got, want) {
			t.Errorf("describe does not show %s:\n%s", want, got)
		}
	}
}

// describe shows what is asked and how far it is; a password in a manifest that was never sent is not shown either.
func TestDescribeGpuJob(t *testing.T) {
	f := newFake(t)
	if got := f.ctl("", "apply", "-f", "../../testdata/dialects/x-gpujob.yaml"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	j := f.get("/apis/minik8s.io/v1/namespaces/default/gpujobs/matrix-ops").(*minik8s.GpuJob)
	j.Status = minik8s.GpuJobStatus{State: "FAILED", Reason: "NonZeroExitCode", JobID: "17", NodeList: "gpu[01-02]", ExitCode: new(int32(3)), Restarts: 2,
		Results: &minik8s.GpuJobResults{Files: 2, Bytes: 99, Master: "m1"}, Conditions: []metav1.Condition{{Type: "Failed", Status: "True", Reason: "NonZeroExitCode", Message: "it said so"}}}
	got := f.ctl("", "describe", "gpu", "matrix-ops").out
	for _, want := range []string{"folder /root/gpu", "into matrix", "  nvcc matrix/matrix_add.cu -o matrix/matrix_add", "  ./matrix/matrix_multiply", "CPUs per task=6", "GPUs per node=1", "matrix_op.err",
		"FAILED", "17", "gpu[01-02]", "Exit Code:        3", "2 times", "2 files, 99 bytes, on m1", "it said so"} {
		if !strings.Contains(got, want) {
			t.Errorf("describe does not show %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Password") {
		t.Errorf("describe shows the password:\n%s", got)
	}
}

// A Job that is neither is refused with both named, before anything is sent.
func TestJobOfNoKind(t *testing.T) {
	f := newFake(t)
	got := f.ctl("kind: Job\nmetadata: {name: a}\nspec: {resultFileName: a}\n", "apply", "-f", "-")
	if got.code == 0 || !strings.Contains(got.text, "neither template, as a batch Job, nor cuFilePath, as a GPU job") || len(f.calls) > 1 {
		t.Errorf("%+v %v", got, f.calls)
	}
}

// apply --wait waits for a GPU job as long as it takes, or as it is told, and says once what holds it up.
func TestWaitForGpuJob(t *testing.T) {
	const path = "/apis/minik8s.io/v1/namespaces/default/gpujobs/long"
	not := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	is := func(kind string) metav1.Condition { return metav1.Condition{Type: kind, Status: metav1.ConditionTrue} }
	login, full := not("Submitted", "LoginNeeded", "somebody has to log in"), not("ResultsReady", "DiskFull", "there is no room")
	steps := []minik8s.GpuJobStatus{
		{Conditions: []metav1.Condition{login}}, {Conditions: []metav1.Condition{login}},
		{Conditions: []metav1.Condition{is("SourcesReady"), not("Submitted", "WaitingForSources", "send the sources")}},
		{State: "PENDING", Reason: "Priority", Conditions: []metav1.Condition{is("Submitted")}},
		{State: "COMPLETED", Folder: "/f", Conditions: []metav1.Condition{is("Submitted"), is("Complete"), full}},
		{State: "COMPLETED", Folder: "/f", Conditions: []metav1.Condition{is("Submitted"), is("Complete"), full}},
		{State: "COMPLETED", Conditions: []metav1.Condition{is("Submitted"), is("Complete"), is("ResultsReady")}, Results: &minik8s.GpuJobResults{Files: 1}},
	}
	run := func(args ...string) ran {
		f := newFake(t)
		looks, now := 0, testTime
		f.clock = func() time.Time { now = now.Add(time.Hour); return now }
		f.routes = map[string]http.HandlerFunc{"GET " + path: func(w http.ResponseWriter, _ *http.Request) {
			obj := f.objects[path]
			if obj == nil {
				fail(w, apierrors.NewNotFound(schema.GroupResource{Resource: "gpujobs"}, "long"))
				return
			}
			j := obj.(*minik8s.GpuJob).DeepCopy()
			j.Status = steps[min(looks, len(steps)-1)]
			looks++
			reply(w, http.StatusOK, j)
		}}
		return f.ctl("apiVersion: minik8s.io/v1\nkind: GpuJob\nmetadata: {name: long}\nspec: {runScripts: ['true']}\n", append([]string{"apply", "--wait", "-f", "-"}, args...)...)
	}
	got := run()
	if got.code != 0 || !strings.Contains(got.out, "completed after") {
		t.Errorf("%+v", got)
	}
	for _, once := range []string{"somebody has to log in", "PENDING (Priority)", "there is no room"} {
		if strings.Count(got.err, once) != 1 {
			t.Errorf("%q is not said once:\n%s", once, got.err)
		}
	}
	if strings.Contains(got.err, "send the sources") {
		t.Errorf("the sources are there:\n%s", got.err)
	}
	if got := run("--timeout=90m"); got.code == 0 || !strings.Contains(got.text, "somebody has to log in") {
		t.Errorf("%+v", got)
	}
}

// The names of remote files cannot drive a terminal.
func TestNamesOfGpuFiles(t *testing.T) {
	f := newFake(t)
	j := &minik8s.GpuJob{ObjectMeta: metaOf("a")}
	f.put(pathOf(j), j)
	const name, quoted = "\x1b]0;title\a\n", `\x1b]0;title\a\n"`
	f.routes = map[string]http.HandlerFunc{
		"GET " + pathOf(j) + "/files": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusOK, map[string]any{"files": []map[string]any{{"path": name, "size": 2}, {"path": name + "d/" + name, "size": 2}}})
		},
		"GET " + pathOf(j) + "/files/" + name:               func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hi")) },
		"GET " + pathOf(j) + "/files/" + name + "d/" + name: func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hi")) },
	}
	used := t.TempDir() // where the folder's name is a file's
	if err := os.WriteFile(filepath.Join(used, name+"d"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"-d", name + "d"}, {"-f", name, "--to", t.TempDir()}, {"-f", name + "x"}, {"-d", name + "x"}, {"--all", "--to", t.TempDir()}, {"--all", "--to", used}} {
		got := f.ctl("", append(append([]string{"gpu"}, args...), "a")...)
		if all := got.out + got.err + got.text; strings.ContainsAny(all, "\x1b\a") || !strings.Contains(all, quoted[:len(quoted)-1]) {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
