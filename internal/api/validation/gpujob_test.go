package validation

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/defaults"
	"minik8s/internal/api/minik8s"
)

func gpuJob(t testing.TB, spec string) *minik8s.GpuJob {
	t.Helper()
	j := &minik8s.GpuJob{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "default"}, Spec: *decode[minik8s.GpuJobSpec](t, spec)}
	defaults.GpuJob(j)
	return j
}

func TestGpuJob(t *testing.T) {
	for _, x := range []struct {
		spec string
		want []string
	}{
		{`{runScripts: [./a]}`, nil},
		{`{cluster: hpc, loginSecret: me, sources: {folder: 'C:\Users\me\my job', file: /a/b.cu, configMap: src, files: [{path: a/b.cu, content: "x\ny"}, {path: c.cu}]},
			workDir: matrix, modules: [cuda/12.4, gcc/8.3.0], compileScripts: ["nvcc a.cu \\\n -o a", ""], compileOn: Job, runScripts: ["./a; rm -rf \"$TMPDIR\""],
			env: [{name: A, value: "x y\nz"}, {name: B, valueFrom: {configMapKeyRef: {name: c, key: k}}}, {name: C, valueFrom: {secretKeyRef: {name: s, key: k}}}],
			outputFile: "my 100% out", errorFile: a/b.err, results: ["*.png", "out/[a-c]?", "."], resultPath: 'D:\out', cleanup: Never,
			partition: "gpu,dgx2", account: a1, qos: high, nodes: 2, tasksPerNode: 4, cpusPerTask: 6, gpusPerNode: 2, gpuType: a100-sxm4.40gb, memory: 64Gi, timeLimit: 2h30m,
			array: "0-99%4", requeue: false, dependsOn: [{name: a}, {name: b, when: afterany}], mail: {to: me@example.com, types: [END, TIME_LIMIT_80]},
			sbatch: ["--constraint=a100|h100", --exclusive, -xnode1, "-w node2", -Hk, "--mem-per-gpu=4G", "--wait-all-nodes=1"]}`, nil},
		{`{}`, []string{"Required spec.runScripts"}},
		{`{runScripts: [a], cluster: A_B, loginSecret: "a b", sources: {configMap: X, folder: "a\nb"}}`,
			[]string{"Invalid spec.cluster", "Invalid spec.loginSecret", "Invalid spec.sources.folder", "Invalid spec.sources.configMap"}},
		{`{runScripts: ["a\0"], compileScripts: [b, "c\0"]}`, []string{"Invalid spec.compileScripts[1]", "Invalid spec.runScripts[0]"}},
		{`{runScripts: [a], workDir: ../x, outputFile: /etc/passwd, errorFile: "a\nb", results: [a/../../b, "[", "/*", "a\tb"]}`,
			[]string{"Invalid spec.workDir", "Invalid spec.outputFile", "Invalid spec.errorFile", "Invalid spec.results[0]", "Invalid spec.results[1]", "Invalid spec.results[2]", "Invalid spec.results[3]"}},
		{`{runScripts: [a], workDir: a/, outputFile: ./x, errorFile: 'a\b'}`, []string{"Invalid spec.workDir", "Invalid spec.outputFile", "Invalid spec.errorFile"}},
		{`{runScripts: [a], outputFile: ., errorFile: "` + strings.Repeat("a", 201) + `"}`, []string{"Invalid spec.outputFile", "Invalid spec.errorFile"}},
		{`{runScripts: [a], sources: {files: [{path: ""}, {path: a}, {path: a}, {path: a/b}, {path: ../c}]}}`,
			[]string{"Required spec.sources.files[0].path", "Duplicate spec.sources.files[2].path", "Invalid spec.sources.files[4].path", "Invalid spec.sources.files[3].path"}},
		{`{runScripts: [a], modules: ["a b", "", -x, "a\nb"], partition: "a b", account: -a, qos: "a\nb"}`,
			[]string{"Invalid spec.modules[0]", "Required spec.modules[1]", "Invalid spec.modules[2]", "Invalid spec.modules[3]", "Invalid spec.partition", "Invalid spec.account", "Invalid spec.qos"}},
		{`{runScripts: [a], nodes: -1, tasksPerNode: -1, cpusPerTask: -1, gpusPerNode: -1, gpus: -1, memory: "0", timeLimit: 900ms}`,
			[]string{"Invalid spec.nodes", "Invalid spec.tasksPerNode", "Invalid spec.cpusPerTask", "Invalid spec.gpusPerNode", "Invalid spec.gpus", "Invalid spec.memory", "Invalid spec.timeLimit"}},
		{`{runScripts: [a], gpus: 1, gpusPerNode: 1, gpuType: "a100:1,license:9"}`, []string{"Forbidden spec.gpus", "Invalid spec.gpuType"}},
		{`{runScripts: [a], gpuType: a100}`, []string{"Required spec.gpusPerNode"}},
		{`{runScripts: [a], compileOn: Here, cleanup: Sometimes}`, []string{"NotSupported spec.compileOn", "NotSupported spec.cleanup"}},
		{`{runScripts: [a], dependsOn: [{name: j}, {}, {name: a, when: sometime}, {name: a}, {name: A}]}`,
			[]string{"Invalid spec.dependsOn[0].name", "Required spec.dependsOn[1].name", "NotSupported spec.dependsOn[2].when", "Duplicate spec.dependsOn[3].name", "Invalid spec.dependsOn[4].name"}},
		{`{runScripts: [a], mail: {to: "a@b --x", types: [END, ended]}}`, []string{"Invalid spec.mail.to", "NotSupported spec.mail.types[1]"}},
		{`{runScripts: [a], mail: {}}`, []string{"Required spec.mail.to"}},
		{`{runScripts: [a], env: [{name: SLURM_JOB_ID}, {name: SBATCH_X}, {name: a-b}, {name: UID}, {}, {name: A, value: "a\0"}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`,
			[]string{"Required spec.env[4].name", "Invalid spec.env[0].name", "Invalid spec.env[1].name", "Invalid spec.env[2].name", "Invalid spec.env[3].name", "Invalid spec.env[5].value", "Forbidden spec.env[6].valueFrom"}},
	} {
		expect(t, GpuJob(gpuJob(t, x.spec)), x.want...)
	}
	long := gpuJob(t, "{runScripts: [a]}")
	long.Name = strings.Repeat("a", 201)
	expect(t, GpuJob(long), "TooLong metadata.name")
}

func TestSbatchOptions(t *testing.T) {
	for _, refused := range []string{"", "a100", "-", "--", "--=x", "---x", "--Constraint=x", "--a b", "--constraint=a\nb", "--x\x00", "--\xff=x",
		"--job-name=x", "--job=x", "--j", "--comment=x", "--comm=x", "--output=x", "--out=x", "--error=x", "--e=x", "--parsable", "--pars", "--wrap=x", "--wr=x", "--array=1", "--arr=1",
		"--chdir=/", "--dependency=x", "--dep=x", "--export=ALL", "--exp=ALL", "--export-file=x", "--wait", "--wai", "--test-only", "--test", "--input=x", "--in=x",
		"--open-mode=truncate", "--open=x", "--help", "--version", "--usage", "--clusters=x", "--cluster=x", "--uid=0", "--workdir=/", "--kill-on-invalid-dep=no", "--kill=no", "--quiet",
		"-Jx", "-J", "-ox", "-ex", "-D/", "-dx", "-W", "-ix", "-a1", "-Mx", "-h", "-V", "-Q", "-HJx", "-vsOkox", "-Z", "-é", "- x", "-\n"} {
		if errs := sbatchOption(spec.Child("sbatch"), refused); len(errs) != 1 {
			t.Errorf("%q is not refused: %v", refused, errs)
		}
	}
	for _, taken := range []string{"--constraint=a100", "--exclusive", "--exclusive=user", "--mem-per-cpu=4G", "--gres-flags=enforce-binding", "--time-min=5", "--wait-all-nodes=1", "--wckey=x",
		"--exclude=a[1-3]", "--signal=B:USR1@120", "--reservation=it's", "--comment-not", "-Ca100", "-xJob", "-H", "-vvv", "-Hx-J", "-n4", "-pgpu"} {
		if errs := sbatchOption(spec.Child("sbatch"), taken); len(errs) != 0 {
			t.Errorf("%q: %v", taken, errs)
		}
	}
}

func TestArray(t *testing.T) {
	for array, right := range map[string]bool{"0": true, "0-9": true, "1,3,5": true, "0-99%4": true, "0-10:2": true, "1-3,7,9-20:3%2": true, "0-99999": true,
		"a": false, "1-": false, "-1": false, "3-1": false, "1,": false, "0-9%0": false, "0-9%": false, "0-9:0": false, "5:2": false, "+1": false, " 1": false, "0-100000": false, "5000000": false, "1%2%3": false,
		"99999999999999999999": false, "0-9\n": false} {
		if errs := slurmArray(spec.Child("array"), array); (len(errs) == 0) != right {
			t.Errorf("%q: %v", array, errs)
		}
	}
}

func TestGpuJobUpdate(t *testing.T) {
	old := gpuJob(t, "{runScripts: [a], memory: 1Gi, timeLimit: 1h}")
	expect(t, GpuJobUpdate(gpuJob(t, "{runScripts: [a], memory: 1024Mi, timeLimit: 60m, cleanup: Never, results: [b]}"), old))
	expect(t, GpuJobUpdate(gpuJob(t, "{runScripts: [b], memory: 1Gi, timeLimit: 1h}"), old), "Forbidden spec")
	with := gpuJob(t, "{runScripts: [a]}")
	with.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: "Perhaps", Reason: "a b"}}
	with.Status.Restarts = -1
	expect(t, GpuJobStatusUpdate(with, old), "Invalid status.restarts", "NotSupported status.conditions[0].status", "Required status.conditions[0].lastTransitionTime", "Invalid status.conditions[0].reason")
}

// What is wrong with a password is said without it.
func TestGpuJobLogin(t *testing.T) {
	for _, x := range []struct {
		user, password string
		want           []string
	}{
		{"me", "it's a $ecret äö", nil},
		{"me", "", []string{"Required spec.password"}},
		{"", "Hidden1", []string{"Required spec.username"}},
		{"me\nHidden1", "Hidden1\x00", []string{"Invalid spec.username", "Invalid spec.password"}},
		{"me", strings.Repeat("Hidden1", 1000), []string{"TooLong spec.password"}},
	} {
		errs := GpuJobLogin(&minik8s.GpuJobSpec{Username: x.user, Password: x.password})
		expect(t, errs, x.want...)
		if strings.Contains(fmt.Sprint(errs), "Hidden1") {
			t.Errorf("an error has the password: %v", errs)
		}
	}
}

func TestSlurmCluster(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJV2y6nA4Vg4DBoNpMcHjJrEZc8gPXhXyXbO9A7h1rVb"
	for _, x := range []struct {
		spec string
		want []string
	}{
		{`{host: login.hpc.example}`, nil},
		{`{host: 10.0.0.1, port: 2222, user: me, loginSecret: me, folder: scratch/jobs, pollSeconds: 5, setup: ["source /etc/profile.d/modules.sh"],
			hostKeys: ["` + key + `", "` + key + ` comment", "login.hpc.example ` + key + `", "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"],
			jump: {host: gate.example, hostKeys: ["` + key + `"]}, defaults: {partition: gpu, account: a, qos: q, modules: [cuda]}}`, nil},
		{`{}`, []string{"Required spec.host"}},
		{`{host: "-oProxyCommand=x", port: 70000, user: "a b", loginSecret: A, folder: ../x, pollSeconds: 4, hostKeys: [x, "SHA256:short", "ssh-ed25519 AAAA", "# x", "` + key[:60] + `", "ssh-rsa ` + key[12:] + `"]}`,
			[]string{"Invalid spec.host", "Invalid spec.port", "Invalid spec.user", "Invalid spec.loginSecret", "Invalid spec.hostKeys[0]", "Invalid spec.hostKeys[1]", "Invalid spec.hostKeys[2]", "Invalid spec.hostKeys[3]",
				"Invalid spec.hostKeys[4]", "Invalid spec.hostKeys[5]", "Invalid spec.folder", "Invalid spec.pollSeconds"}},
		{`{host: a, folder: "~/x", pollSeconds: 3601, setup: ["a\0"], jump: {port: -1}, defaults: {partition: "a b", modules: [""]}}`,
			[]string{"Required spec.jump.host", "Invalid spec.jump.port", "Invalid spec.folder", "Invalid spec.pollSeconds", "Invalid spec.setup[0]", "Invalid spec.defaults.partition", "Required spec.defaults.modules[0]"}},
		{`{host: a, folder: "/"}`, []string{"Invalid spec.folder"}},
		{`{host: a, folder: "a\nb"}`, []string{"Invalid spec.folder"}},
	} {
		c := &minik8s.SlurmCluster{Spec: *decode[minik8s.SlurmClusterSpec](t, x.spec)}
		defaults.SlurmCluster(c)
		expect(t, SlurmCluster(c), x.want...)
	}
}
