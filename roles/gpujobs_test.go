package roles_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/slurm/slurmtest"
)

// centre is a daemon beside a real Slurm.
type centre struct {
	*process
	c     client.Interface
	slurm *slurmtest.Cluster
}

func newCentre(t *testing.T, o slurmtest.Options, args ...string) *centre {
	t.Helper()
	needRoot(t)
	o.ThisNetwork = true
	s := slurmtest.Start(t, o)
	p := newProcess(t, args...)
	x := &centre{process: p, c: p.up(), slurm: s}
	x.must(x.c.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login"},
		Type: corev1.SecretTypeSSHAuth, Data: map[string][]byte{corev1.SSHAuthPrivateKey: s.Key}}, client.WriteOptions{}))
	x.must(x.c.Create(context.Background(), &minik8s.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "centre"},
		Spec: minik8s.SlurmClusterSpec{SSHHost: minik8s.SSHHost{Host: "127.0.0.1", User: s.User, LoginSecret: "login", HostKeys: []string{s.HostKey}}, PollSeconds: 5}}, client.WriteOptions{}))
	return x
}

func (x *centre) must(_ api.Object, err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *centre) submit(name string, spec minik8s.GpuJobSpec) {
	x.t.Helper()
	x.must(x.c.Create(context.Background(), &minik8s.GpuJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}, client.WriteOptions{}))
}

func (x *centre) job(name string) *minik8s.GpuJob {
	j, err := client.Get[*minik8s.GpuJob](context.Background(), x.c, client.Key{Kind: api.GpuJobs, Namespace: "default", Name: name})
	if err != nil {
		return &minik8s.GpuJob{}
	}
	return j
}

// state waits until a job is in a state.
func (x *centre) state(name, state string) *minik8s.GpuJob {
	x.t.Helper()
	defer func() {
		if x.t.Failed() {
			x.t.Logf("%+v\n%s", x.job(name).Status, x.slurm.Do("squeue -t all; scontrol show job"))
		}
	}()
	x.eventually(name+" is "+state, func() bool { return x.job(name).Status.State == state })
	return x.job(name)
}

// back waits until a job's files are back.
func (x *centre) back(name string) *minik8s.GpuJob {
	x.t.Helper()
	defer func() {
		if x.t.Failed() {
			x.t.Logf("%+v\n%s", x.job(name).Status, x.slurm.Do("squeue -t all; ls -l .minik8s/*/jobs/"+name+".*/files"))
		}
	}()
	x.eventually("the results of "+name+" are back", func() bool {
		return apimeta.IsStatusConditionTrue(x.job(name).Status.Conditions, minik8s.GpuJobResultsReady)
	})
	return x.job(name)
}

// read reads one of a job's subresources.
func (x *centre) read(name, sub string) string {
	x.t.Helper()
	out, err := exec.Command("curl", "-sS", "--unix-socket", filepath.Join(x.dir, "api.sock"), "http://x/apis/minik8s.io/v1/namespaces/default/gpujobs/"+name+"/"+sub).CombinedOutput()
	if err != nil {
		x.t.Fatal(err, string(out))
	}
	return string(out)
}

// follow has stock kubectl follow what a job prints. reads waits until it has printed more, or has ended.
func (x *centre) follow(name string) (reads func(want string, end bool)) {
	x.t.Helper()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return func(string, bool) {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, kubectl, "--kubeconfig", filepath.Join(x.dir, "admin.kubeconfig"), "get", "--raw",
		"/apis/minik8s.io/v1/namespaces/default/gpujobs/"+name+"/log?follow=true&stream=Stdout")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() {
		cancel()
		cmd.Wait() //nolint:errcheck // it may have been waited for
	})
	return func(want string, end bool) {
		x.t.Helper()
		got, err := make([]byte, len(want)), error(nil)
		if _, err = io.ReadFull(out, got); err == nil && end {
			got, err = io.ReadAll(out)
			if waited := cmd.Wait(); err == nil {
				err = waited
			}
		}
		if err != nil || string(got) != want {
			x.t.Errorf("kubectl prints %q, not %q, of %s: %v", got, want, name, err)
		}
	}
}

// TestGpuJobs runs jobs that end in every way on a real Slurm, all at once.
func TestGpuJobs(t *testing.T) {
	x := newCentre(t, slurmtest.Options{})
	program := minik8s.GpuJobSources{Files: []minik8s.GpuJobFile{{Path: "src/add.c", Content: "#include <stdio.h>\nint main() { printf(\"sum %d\\n\", 19 + 23); }\n"}}}
	x.submit("good", minik8s.GpuJobSpec{Sources: program, WorkDir: "my work", Modules: []string{"cuda/10.1"}, CompileScripts: []string{`cc "my work/src/add.c" -o add`},
		RunScripts: []string{"./add", `echo "cards=$SLURM_JOB_GPUS loaded=$LOADED name=$NAME" >&2`, "mkdir -p out/deep", "echo 1 >'out/it is'", "echo 2 >out/deep/file", "echo 3 >other"},
		Env:        []corev1.EnvVar{{Name: "NAME", Value: "it's $HOME; `x`\n#SBATCH"}}, GPUsPerNode: 2, Results: []string{"out"}, OutputFile: "100%j 'out'.txt"})
	x.submit("closed", minik8s.GpuJobSpec{RunScripts: []string{"echo 1 >open; echo 2 >shut; chmod 0 shut; mkdir -m 0 room; echo said"}, Results: []string{"*"}})
	x.submit("uncompiled", minik8s.GpuJobSpec{CompileScripts: []string{"cc nowhere.c"}, RunScripts: []string{"true"}})
	x.submit("in-job", minik8s.GpuJobSpec{CompileScripts: []string{"cc nowhere.c"}, CompileOn: minik8s.CompileOnJob, RunScripts: []string{"true"}})
	x.submit("failing", minik8s.GpuJobSpec{RunScripts: []string{"echo so far", "exit 3", "echo not reached"}})
	x.submit("refused", minik8s.GpuJobSpec{Partition: "nowhere", RunScripts: []string{"true"}})
	x.submit("late", minik8s.GpuJobSpec{RunScripts: []string{"sleep 600"}, TimeLimit: &metav1.Duration{Duration: time.Minute}})
	x.submit("array", minik8s.GpuJobSpec{Array: "0-5%3", RunScripts: []string{"echo task $SLURM_ARRAY_TASK_ID", "[ $SLURM_ARRAY_TASK_ID != 4 ]"}})
	x.submit("greedy", minik8s.GpuJobSpec{Memory: new(resource.MustParse("20Mi")), RunScripts: []string{`a=x; while :; do a=$a$a; done`}})
	x.submit("first", minik8s.GpuJobSpec{RunScripts: []string{"sleep 600"}})
	x.submit("second", minik8s.GpuJobSpec{DependsOn: []minik8s.GpuJobDependency{{Name: "first", When: "afterany"}}, RunScripts: []string{"echo second"}})
	x.submit("never", minik8s.GpuJobSpec{DependsOn: []minik8s.GpuJobDependency{{Name: "uncompiled"}}, RunScripts: []string{"true"}})

	for i := range 10 { // more than there are workers, sessions and places to compile: they hold nobody up
		x.submit(fmt.Sprintf("slow-%d", i), minik8s.GpuJobSpec{CompileScripts: []string{"sleep 3"}, RunScripts: []string{"true"}})
	}
	x.slurm.Expire(x.state("late", "RUNNING").Status.JobID)
	good := x.back("good")
	if s := good.Status; s.State != "COMPLETED" || *s.ExitCode != 0 || s.JobID == "" || s.NodeList == "" || s.StartTime == nil || s.EndTime == nil || s.Results.Files != 5 ||
		!apimeta.IsStatusConditionTrue(s.Conditions, minik8s.GpuJobComplete) {
		t.Errorf("good: %+v", s)
	}
	for file, want := range map[string]string{"100%25j%20'out'.txt": "sum 42\n", "out/it%20is": "1\n", "out/deep/file": "2\n",
		"good.err": "cards=0,1 loaded=cuda/10.1 name=it's $HOME; `x`\n#SBATCH\n"} {
		if got := x.read("good", "files/"+file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	if got := x.read("good", "log?stream=Stdout"); got != "sum 42\n" {
		t.Errorf("log: %q", got)
	}
	x.closedWithin()
	x.eventually("the folder of a good job is removed from the cluster", func() bool { return x.job("good").Status.Folder == "" })
	if got := x.slurm.Do("ls .minik8s/*/jobs"); strings.Contains(got, "good.") {
		t.Errorf("on the cluster: %s", got)
	}

	for name, want := range map[string]string{"uncompiled": "FAILED CompileError", "in-job": "FAILED CompileError", "failing": "FAILED NonZeroExitCode",
		"refused": "FAILED Refused", "array": "FAILED NonZeroExitCode"} {
		j := x.back(name)
		if got := j.Status.State + " " + j.Status.Reason; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	// What nobody can read keeps nothing back, and stays on the cluster.
	j := x.back("closed")
	if c := apimeta.FindStatusCondition(j.Status.Conditions, minik8s.GpuJobResultsReady); c.Reason != "CollectedInPart" || !strings.Contains(c.Message, `2 cannot be read: "room/" "shut"`) {
		t.Errorf("closed: %+v", c)
	}
	if got := x.read("closed", "log") + x.read("closed", "files/open"); got != "said\n1\n" {
		t.Errorf("closed: %q", got)
	}
	if got := x.slurm.Do("ls .minik8s/*/jobs/closed.*/files"); !strings.Contains(got, "shut") {
		t.Errorf("closed: on the cluster: %s", got)
	}
	if got := x.read("uncompiled", "log"); !strings.Contains(got, "nowhere.c") {
		t.Errorf("what the compiler said: %q", got)
	}
	if got := x.read("failing", "log"); got != "so far\n" {
		t.Errorf("what a failing job said: %q", got)
	}
	// It ends here or, if it was submitted before the other had ended, there.
	if j := x.back("never"); j.Status.Reason != "DependencyNeverSatisfied" || !apimeta.IsStatusConditionTrue(j.Status.Conditions, minik8s.GpuJobFailed) {
		t.Errorf("never: %+v", j.Status)
	}
	if a := x.job("array").Status; a.Tasks == nil || *a.Tasks != (minik8s.GpuJobTasks{Succeeded: 5, Failed: 1}) {
		t.Errorf("array: %+v", a.Tasks)
	}
	if got := x.read("array", "log?task=2&stream=Stdout"); got != "task 2\n" {
		t.Errorf("a task's log: %q", got)
	}
	if j := x.back("greedy"); j.Status.State != "FAILED" && j.Status.State != "OUT_OF_MEMORY" {
		t.Errorf("greedy: %+v", j.Status)
	}

	for i := range 10 {
		x.state(fmt.Sprintf("slow-%d", i), "COMPLETED")
	}
	// A job that is deleted is cancelled, and the one that waits for its end runs.
	x.state("first", "RUNNING")
	if s := x.job("second").Status; s.State != "PENDING" || s.JobID == "" {
		t.Errorf("second: %+v", s)
	}
	x.must(x.c.Delete(context.Background(), client.Key{Kind: api.GpuJobs, Namespace: "default", Name: "first"}, nil))
	x.eventually("first is gone", func() bool { return x.job("first").Name == "" })
	x.state("second", "COMPLETED")
	if got := x.slurm.Do("ls .minik8s/*/jobs"); strings.Contains(got, "first.") {
		t.Errorf("on the cluster: %s", got)
	}
	// Somebody cancels one on the cluster.
	x.submit("lost", minik8s.GpuJobSpec{RunScripts: []string{"echo so far", "until [ -e go ]; do sleep 0.1; done", "echo on", "sleep 600"}})
	id := x.state("lost", "RUNNING").Status.JobID
	follow := x.follow("lost")
	follow("so far\n", false)
	x.slurm.Do("cd .minik8s/*/jobs/lost.*/files && touch go")
	follow("on\n", false)
	x.slurm.Root("scancel " + id)
	follow("", true)
	if j := x.state("lost", "CANCELLED"); !apimeta.IsStatusConditionTrue(j.Status.Conditions, minik8s.GpuJobFailed) {
		t.Errorf("%+v", j.Status)
	}
	if j := x.state("late", "TIMEOUT"); !apimeta.IsStatusConditionTrue(j.Status.Conditions, minik8s.GpuJobFailed) {
		t.Errorf("late: %+v", j.Status)
	}
	// A node goes down under a job, which Slurm queues again.
	x.submit("moved", minik8s.GpuJobSpec{RunScripts: []string{"[ ${SLURM_RESTART_COUNT:-0} != 0 ] || sleep 600", "echo done"}})
	node := x.state("moved", "RUNNING").Status.NodeList
	x.slurm.Root("scontrol update nodename=" + node + " state=down reason=test")
	if j := x.state("moved", "COMPLETED"); j.Status.Restarts != 1 {
		t.Errorf("moved: %+v", j.Status)
	}
	x.slurm.Root("scontrol update nodename=" + node + " state=resume")

	// Nothing that logs in is in an object, an event or the daemon's log.
	secret := strings.Split(string(x.slurm.Key), "\n")[3]
	for _, kind := range []*api.Kind{api.GpuJobs, api.SlurmClusters, api.Events} {
		list, err := x.c.List(context.Background(), kind, client.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(list.Items)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 0 || strings.Contains(string(text), secret) {
			t.Errorf("the key is in a %s, or there are none", kind)
		}
	}
	if strings.Contains(x.out.String(), secret) {
		t.Error("the key is in the daemon's log")
	}
}

// TestGpuJobsAreNotLost kills the daemon, and cuts the connection, while a job is in each of its phases. It is submitted once and
// ends.
func TestGpuJobsAreNotLost(t *testing.T) {
	x := newCentre(t, slurmtest.Options{})
	x.slurm.Before("sbatch", "sleep 0.5")
	x.slurm.After("sbatch", "sleep 0.5")
	const rounds = 6
	spec := minik8s.GpuJobSpec{CompileScripts: []string{"sleep 0.5"}, RunScripts: []string{"echo run >>ran", "sleep 1"}, Results: []string{"ran"}}
	for i := range rounds {
		name := fmt.Sprintf("job-%d", i)
		x.submit(name, spec)
		pause(time.Duration(i) * 500 * time.Millisecond)
		if i%2 == 0 {
			x.kill()
			x.c = x.up()
		} else {
			x.slurm.Cut()
		}
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("%+v\n%s", x.job(name).Status, x.slurm.Do("squeue -t all; find .minik8s; tail -n 50 .minik8s/*/jobs/*/start.out"))
				}
			}()
			x.back(name)
		}()
		if got := x.read(name, "files/ran"); got != "run\n" {
			t.Errorf("%s: it ran %q", name, got)
		}
	}
	// Results are there after one more start, too; those of a job that is gone are not.
	x.must(x.c.Delete(context.Background(), client.Key{Kind: api.GpuJobs, Namespace: "default", Name: "job-0"}, nil))
	x.eventually("job-0 is gone", func() bool { return x.job("job-0").Name == "" })
	x.kill()
	x.c = x.up()
	x.eventually("the controllers work", func() bool {
		name := "after"
		if x.job(name).Name == "" {
			x.submit(name, minik8s.GpuJobSpec{RunScripts: []string{"true"}})
		}
		return x.job(name).Status.State == "COMPLETED"
	})
	for i := 1; i < rounds; i++ {
		if got := x.read(fmt.Sprintf("job-%d", i), "files/ran"); got != "run\n" {
			t.Errorf("job-%d after a start: %q", i, got)
		}
	}
	if left, err := os.ReadDir(filepath.Join(x.dir, "gpu")); err != nil || len(left) < rounds-1 || len(left) > rounds {
		t.Errorf("on the disk: %v %v", left, err)
	}
	if n := x.slurm.Calls("sbatch") - 1; n != rounds {
		t.Errorf("%d jobs were submitted, there are %d", n, rounds)
	}
}

// TestUploads sends sources as ctl does, and what ctl would not send.
func TestUploads(t *testing.T) {
	x := newCentre(t, slurmtest.Options{})
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "a", "deep/it's $x": "b"} {
		path := filepath.Join(dir, "src", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.txt", filepath.Join(dir, "src", "link")); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "job.yaml")
	err := os.WriteFile(manifest, []byte(`apiVersion: minik8s.io/v1
kind: GpuJob
metadata: {name: up}
spec:
  sources: {folder: `+dir+`/src}
  runScripts: ['cat link deep/*', 'cp -rP . ../all && mv ../all all']
  results: [all]
  resultPath: `+dir+`/back
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	path, _ := built() //nolint:errcheck // newProcess would have failed
	out, err := exec.Command(path, "ctl", "--data-dir", x.dir, "apply", "-f", manifest, "--wait").CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for name, want := range map[string]string{"up.out": "ab", "all/deep/it's $x": "b"} {
		if got, err := os.ReadFile(filepath.Join(dir, "back", name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v\n%s", name, got, err, out)
		}
	}
	// What reaches beyond the folder is refused.
	x.submit("bad", minik8s.GpuJobSpec{Sources: minik8s.GpuJobSources{Folder: "/nowhere"}, RunScripts: []string{"true"}})
	x.eventually("it waits for its sources", func() bool { return x.job("bad").Status.State == "UPLOADING" })
	for _, make := range []string{"ln -s /etc e; tar cf - e", "ln -s ../.. e; tar cf - e", "touch f; tar cf - --transform=s,f,../f, -P f", "mkfifo p; tar cf - p", "echo no tar"} {
		c := exec.Command("sh", "-c", "cd "+t.TempDir()+"; { "+make+"; } | curl -sS -o /dev/null -w '%{http_code}' -T - --unix-socket "+filepath.Join(x.dir, "api.sock")+
			" http://x/apis/minik8s.io/v1/namespaces/default/gpujobs/bad/sources")
		if code, err := c.Output(); err != nil || string(code) != "400" {
			t.Errorf("%s: %s %v", make, code, err)
		}
	}
	if x.job("bad").Status.JobID != "" {
		t.Error("it was submitted")
	}
}

// TestGpuJobsNamespaceGoes deletes a namespace with all that says how to log in: its job is cancelled all the same.
func TestGpuJobsNamespaceGoes(t *testing.T) {
	x := newCentre(t, slurmtest.Options{})
	ctx := context.Background()
	x.must(x.c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "away"}}, client.WriteOptions{}))
	x.must(x.c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "away", Name: "login"},
		StringData: map[string]string{"username": x.slurm.User, "password": x.slurm.Password}}, client.WriteOptions{}))
	x.must(x.c.Create(ctx, &minik8s.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "away", Name: "centre"},
		Spec: minik8s.SlurmClusterSpec{SSHHost: minik8s.SSHHost{Host: "127.0.0.1", LoginSecret: "login", HostKeys: []string{x.slurm.HostKey}}}}, client.WriteOptions{}))
	x.must(x.c.Create(ctx, &minik8s.GpuJob{ObjectMeta: metav1.ObjectMeta{Namespace: "away", Name: "long"},
		Spec: minik8s.GpuJobSpec{RunScripts: []string{"sleep 600"}}}, client.WriteOptions{}))
	x.eventually("it runs", func() bool { return strings.Contains(x.slurm.Do("squeue -h -o %T"), "RUNNING") })
	key := client.Key{Kind: api.Namespaces, Name: "away"}
	x.must(x.c.Delete(ctx, key, nil))
	x.eventually("the namespace is gone", func() bool {
		_, err := x.c.Get(ctx, key)
		return err != nil
	})
	x.eventually("the job is cancelled", func() bool { return x.slurm.Do("squeue -h -o %T") == "" })
	if got := x.slurm.Do("ls .minik8s/*/jobs"); strings.Contains(got, "long.") {
		t.Errorf("on the cluster: %s", got)
	}
}

// TestSeedGpuJobs sends the manifests of both seed systems as they are, but for the folder and the login, with a C compiler for nvcc.
func TestSeedGpuJobs(t *testing.T) {
	x := newCentre(t, slurmtest.Options{})
	x.slurm.Root(`printf '#!/bin/sh\nfor a in "$@"; do [ "$a" = -lcublas ] || set -- "$@" "$a"; shift; done\nexec cc -x c "$@"\n' >/usr/local/bin/nvcc; chmod 755 /usr/local/bin/nvcc`)
	dir := t.TempDir()
	for _, name := range []string{"matrix_add.cu", "matrix_multiply.cu", "sum_matrix.cu"} {
		text := "#include <stdio.h>\nint main(void) { puts(\"" + name + "\"); return 0; }\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path, _ := built() //nolint:errcheck // newProcess would have failed
	ctl := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(path, append([]string{"ctl", "--data-dir", x.dir}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
		return string(out)
	}
	manifest, err := os.ReadFile("../testdata/dialects/x-gpujob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(manifest), "\n")
	for i, l := range lines {
		switch key, _, _ := strings.Cut(strings.TrimSpace(l), ":"); key {
		case "volume":
			lines[i] = "  volume: " + dir
		case "username":
			lines[i] = "  username: " + x.slurm.User
		case "password":
			lines[i] = "  password: " + x.slurm.Password
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := ctl("apply", "-f", "x.yaml", "--wait"); !strings.Contains(out, "completed") {
		t.Error(out)
	}
	if got := ctl("logs", "gpujob/matrix-ops"); !strings.HasSuffix(got, "matrix_add.cu\nmatrix_multiply.cu\n") {
		t.Errorf("%q", got)
	}
	if got := x.job("matrix-ops"); strings.Contains(fmt.Sprintf("%+v", got), x.slurm.Password) {
		t.Error("the password is in the object")
	}
	if out := ctl("gpu", "matrix-ops"); !strings.Contains(out, "matrix_op.out") || !strings.Contains(out, "matrix_op.err") {
		t.Error(out)
	}

	a, err := filepath.Abs("../testdata/dialects/a-gpujob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if out := ctl("apply", "-f", a); !strings.Contains(out, "gpu push matrix-sum") {
		t.Error(out)
	}
	ctl("gpu", "push", "matrix-sum", "sum_matrix.cu")
	ctl("apply", "-f", a, "--wait")
	if got, err := os.ReadFile(filepath.Join(dir, "sum_matrix", "sum_matrix.out")); err != nil || string(got) != "sum_matrix.cu\n" {
		t.Errorf("%q %v", got, err)
	}
	if out := ctl("get", "job"); !strings.Contains(out, "matrix-sum") {
		t.Error(out)
	}
}
