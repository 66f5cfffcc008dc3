package ctl

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
