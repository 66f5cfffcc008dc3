package batch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const uid = "0123abcd-0000-4000-8000-00000000beef"

func job(t testing.TB) *Job {
	base := t.TempDir()
	j := &Job{Title: "default/matrix", Name: "matrix", UID: uid, Layout: Layout{Base: base, Name: "matrix", UID: uid},
		Run: []string{"true"}, Output: "matrix.out", Error: "matrix.err", CompileOutput: "matrix.compile.out"}
	for _, dir := range []string{j.Layout.Files(), j.Layout.Marks(), j.Layout.Folder() + "/ends"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// put writes the scripts where they belong.
func put(t testing.TB, j *Job) {
	t.Helper()
	scripts, err := j.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(j.Layout.Folder(), name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// slurm is a PATH with commands that stand for Slurm's. Each notes its arguments, one a line, in the file calls.
func slurm(t testing.TB, commands map[string]string) (env []string, calls func() string) {
	dir := t.TempDir()
	for name, body := range commands {
		text := "#!/bin/sh\n{ printf '%s' " + name + "; printf ' <%s>' \"$@\"; echo; } >>" + Quote(dir+"/calls") + "\n" + body + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")), func() string {
		b, _ := os.ReadFile(dir + "/calls")
		return string(b)
	}
}

func start(t testing.TB, j *Job, env []string) (out string, code int) {
	t.Helper()
	c := exec.Command("sh", "start.sh")
	c.Dir, c.Env = j.Layout.Folder(), env
	b, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(b), c.ProcessState.ExitCode()
}

func marks(t testing.TB, j *Job) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(j.Layout.Marks())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(j.Layout.Marks(), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(e.Name(), j.UID+".")] = strings.TrimSpace(string(b))
	}
	return out
}

// nasty are values that have tried to be something else.
var nasty = []string{
	"a b", "it's", `"x"`, "$(touch pwned)", "`touch pwned`", "; touch pwned", "a\ntouch pwned", "#SBATCH --uid=0", "\n#SBATCH --partition=x", "-rf", "$HOME", `\`, "*", "~", "é", "a'\\''b", "x\x00y",
}

func TestQuote(t *testing.T) {
	for _, s := range nasty {
		out, err := exec.Command("sh", "-c", "printf %s "+Quote(s)).Output()
		if err != nil || string(out) != strings.ReplaceAll(s, "\x00", "") {
			t.Errorf("%q is read as %q (%v)", s, out, err)
		}
	}
}

func TestArgs(t *testing.T) {
	j := job(t)
	j.Output = "50%j.out"
	j.Options = Options{Partition: "dgx2", Nodes: 1, TasksPerNode: 2, CPUsPerTask: 6, GPUsPerNode: 1, GPUType: "v100", Memory: 3<<30 + 1, TimeLimit: 90 * time.Minute,
		Array: "0-9%2", Requeue: new(false), Dependencies: []Dependency{{"afterok", "12"}, {"afterany", "13"}}, MailTo: "a@b.c", MailTypes: []string{"END", "FAIL"}, Extra: []string{"--constraint=a|b"}}
	got, err := j.Args()
	if err != nil {
		t.Fatal(err)
	}
	files := j.Layout.Files()
	want := []string{"--parsable", "--job-name=matrix." + uid, "--comment=minik8s:" + uid, "--chdir=" + files,
		"--output=" + files + "/50%%j.out.%a", "--error=" + files + "/matrix.err.%a", "--open-mode=append",
		"--partition=dgx2", "--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=6", "--gres=gpu:v100:1", "--mem=3073M", "--time=0-01:30:00",
		"--array=0-9%2", "--no-requeue", "--dependency=afterok:12,afterany:13", "--kill-on-invalid-dep=yes", "--mail-user=a@b.c", "--mail-type=END,FAIL", "--constraint=a|b"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, bad := range []string{"--x=a\nb", "--x=\x1b", "\x7f"} {
		j.Options.Extra = []string{bad}
		if _, err := j.Scripts(); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestNothingIsInjected puts what is nasty wherever a value goes, and looks what the scripts do.
func TestNothingIsInjected(t *testing.T) {
	for i, s := range nasty {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			j := job(t)
			plain := strings.NewReplacer("\n", "_", "\x00", "_").Replace(s)
			j.Title = s
			j.Env = []Var{{"VALUE", s}}
			j.Modules = []string{s}
			j.Output, j.Error = plain, plain+".err"
			j.Options = Options{Partition: plain, Account: plain, Extra: []string{"--comment=" + plain}}
			j.Compile = []string{`printf %s "$VALUE" >compiled-with`}
			j.Setup = []string{`module() { printf '%s' "$2" >module-loaded; }`}
			j.Run = []string{`printf %s "$VALUE" >ran-with`}
			put(t, j)
			env, calls := slurm(t, map[string]string{"sbatch": "echo 7"})
			if out, code := start(t, j, env); code != 0 {
				t.Fatalf("start.sh: %d %s", code, out)
			}
			c := exec.Command("bash", j.Layout.Folder()+"/batch.sh")
			c.Dir, c.Env = j.Layout.Files(), append(env, "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n1")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := strings.ReplaceAll(s, "\x00", "")
			for _, f := range []string{"compiled-with", "module-loaded", "ran-with"} {
				if b, _ := os.ReadFile(j.Layout.Files() + "/" + f); string(b) != want {
					t.Errorf("%s: %q, want %q", f, b, want)
				}
			}
			if n := strings.Count(calls(), " <--partition="+plain+">"); n != 1 {
				t.Errorf("sbatch was called with\n%s", calls())
			}
			for _, dir := range []string{j.Layout.Folder(), j.Layout.Files(), j.Layout.Base} {
				if _, err := os.Stat(dir + "/pwned"); err == nil {
					t.Error("a value was run")
				}
			}
			text, _ := j.Scripts()
			for line := range strings.Lines(text["batch.sh"]) {
				if strings.HasPrefix(line, "#SBATCH") {
					t.Errorf("the batch script has the directive %q", line)
				}
			}
			if m := marks(t, j); !strings.Contains(m["end"], "exit=0") || m["submitted"] != "job=7" || !strings.HasPrefix(m["run"], "job=7 nodes=n1 restarts=0 start=") {
				t.Errorf("marks: %q", m)
			}
		})
	}
}

// TestStartOnce calls start.sh in every state that a crash can leave.
func TestStartOnce(t *testing.T) {
	const sbatch = "echo 42"
	cases := []struct {
		name     string
		files    map[string]string // in the job's folder
		commands map[string]string
		code     int
		mark     string // KIND: TEXT
		sbatch   int    // calls
		untried  bool   // nothing says that it was tried
	}{
		{name: "first", commands: map[string]string{"sbatch": sbatch}, mark: "submitted: job=42", sbatch: 1},
		{name: "with a cluster's name", commands: map[string]string{"sbatch": "echo '42;gpu'"}, mark: "submitted: job=42", sbatch: 1},
		{name: "recorded", files: map[string]string{"tried": "", "jobid": "41"}, commands: map[string]string{"sbatch": sbatch}, mark: "submitted: job=41"},
		{name: "tried and queued", files: map[string]string{"tried": ""}, commands: map[string]string{"sbatch": sbatch, "squeue": "echo 40"}, mark: "submitted: job=40"},
		{name: "tried and never accepted", files: map[string]string{"tried": ""}, commands: map[string]string{"sbatch": sbatch, "squeue": ":"}, mark: "submitted: job=42", sbatch: 1},
		{name: "tried and has run", files: map[string]string{"tried": "", "jobid": "39"}, commands: map[string]string{"sbatch": sbatch, "squeue": "exit 1"}, mark: "submitted: job=39"},
		{name: "tried and gone", files: map[string]string{"tried": ""}, commands: map[string]string{"sbatch": sbatch, "squeue": ":", "sacct": "echo 38"}, mark: "submitted: job=38"},
		{name: "taken twice", commands: map[string]string{"sbatch": "echo 37 >jobid; echo 42", "scancel": `[ "$*" = 42 ] || echo 36 >jobid`}, mark: "submitted: job=37", sbatch: 1},
		{name: "tried and not known", files: map[string]string{"tried": ""}, commands: map[string]string{"sbatch": sbatch, "squeue": "echo slow >&2; exit 1"}, code: StartFailed},
		{name: "cancelled before", files: map[string]string{"cancelled": ""}, commands: map[string]string{"sbatch": sbatch}},
		{name: "refused", commands: map[string]string{"sbatch": "echo 'sbatch: error: Batch job submission failed: Invalid partition name specified' >&2; exit 1"}, mark: "refused: sbatch: error: Batch job submission failed: Invalid partition name specified", sbatch: 1},
		{name: "no controller", commands: map[string]string{"sbatch": "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)' >&2; exit 1"}, code: StartFailed, sbatch: 1},
		{name: "too many jobs", commands: map[string]string{"sbatch": "echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1"}, code: StartFailed, sbatch: 1, untried: true},
		{name: "the first is gone", commands: map[string]string{"sbatch": "echo 'sbatch: error: Batch job submission failed: Job dependency problem' >&2; exit 1"}, code: StartFailed, sbatch: 1, untried: true},
		{name: "a bad option", commands: map[string]string{"sbatch": "echo 'sbatch: error: Invalid --sockets-per-node' >&2; exit 1"}, mark: "refused: sbatch: error: Invalid --sockets-per-node", sbatch: 1},
		{name: "killed", commands: map[string]string{"sbatch": "kill -9 $$"}, code: StartFailed, sbatch: 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			j := job(t)
			put(t, j)
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(j.Layout.Folder(), name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env, calls := slurm(t, c.commands)
			out, code := start(t, j, env)
			if code != c.code {
				t.Errorf("code %d, want %d: %s", code, c.code, out)
			}
			var got string
			for kind, text := range marks(t, j) {
				got += kind + ": " + text
			}
			if got != c.mark {
				t.Errorf("mark %q, want %q", got, c.mark)
			}
			if _, err := os.Stat(j.Layout.Folder() + "/tried"); c.untried && err == nil {
				t.Error("it says that it was tried: sources and dependencies are not renewed")
			}
			if n := strings.Count(calls(), "sbatch "); n != c.sbatch {
				t.Errorf("%d calls of sbatch, want %d", n, c.sbatch)
			}
		})
	}
}

// TestStartsAtOnce has many start.sh at work together: one submits.
func TestStartsAtOnce(t *testing.T) {
	j := job(t)
	put(t, j)
	gate := t.TempDir()
	env, calls := slurm(t, map[string]string{"sbatch": "while [ ! -f " + Quote(gate+"/open") + " ]; do sleep 0.01; done; echo 5"})
	codes := make(chan int, 8)
	for range 8 {
		go func() {
			_, code := start(t, j, env)
			codes <- code
		}()
	}
	for range 7 {
		if code := <-codes; code != StartBusy {
			t.Errorf("code %d beside one at work, want %d", code, StartBusy)
		}
	}
	if err := os.WriteFile(gate+"/open", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-codes; code != 0 {
		t.Errorf("code %d", code)
	}
	if n := strings.Count(calls(), "sbatch "); n != 1 {
		t.Errorf("%d calls of sbatch", n)
	}
}

func TestCompiling(t *testing.T) {
	j := job(t)
	j.Compile = []string{"echo compiling", "false", "echo not reached"}
	put(t, j)
	env, calls := slurm(t, map[string]string{"sbatch": "echo 1"})
	if out, code := start(t, j, env); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	if m := marks(t, j); len(m) != 1 || m["uncompiled"] != "exit=1" || calls() != "" {
		t.Errorf("marks %q, calls %q", m, calls())
	}
	if b, _ := os.ReadFile(j.Layout.Files() + "/matrix.compile.out"); string(b) != "compiling\n" {
		t.Errorf("it printed %q", b)
	}

	j = job(t)
	j.Compile, j.InJob, j.Run = []string{"exit 3"}, true, []string{"touch ran"}
	put(t, j)
	c := exec.Command("bash", j.Layout.Folder()+"/batch.sh")
	c.Env = append(os.Environ(), "SLURM_JOB_ID=7")
	if _, err := c.CombinedOutput(); err == nil {
		t.Error("a job whose compiling fails ends well")
	}
	m := ParseMark(uid, "", "end", marks(t, j)["end"])
	if !m.Compile || m.Exit != 1 || m.Job != "7" {
		t.Errorf("%+v", m)
	}
	if _, err := os.Stat(j.Layout.Files() + "/ran"); err == nil {
		t.Error("it ran all the same")
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		run  []string
		exit int32
	}{{[]string{"true", "exit 7"}, 7}, {[]string{"false", "true"}, 1}, {[]string{"kill -9 $$"}, 137}, {[]string{"true"}, 0}, {[]string{"echo )", "true"}, 2}} {
		j := job(t)
		j.Run = c.run
		put(t, j)
		cmd := exec.Command("bash", j.Layout.Folder()+"/batch.sh")
		cmd.Env = append(os.Environ(), "SLURM_JOB_ID=7", "SLURM_ARRAY_JOB_ID=6", "SLURM_ARRAY_TASK_ID=3")
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != int(c.exit) {
			t.Errorf("%q: code %d, want %d", c.run, code, c.exit)
		}
		if m := ParseMark(uid, "3", "end", marks(t, j)["3.end"]); m.Exit != c.exit || m.Job != "6" || m.End.IsZero() {
			t.Errorf("%q: %+v", c.run, m)
		}
	}
}

func TestParse(t *testing.T) {
	queue, err := ParseQueue("12|N/A|PENDING|Resources||N/A|N/A|matrix." + uid + "\n13|4-9%2|RUNNING|None|gpu[01-02]|2026-01-02T03:04:05|2026-01-02T04:04:05|x\n")
	if err != nil || len(queue) != 2 {
		t.Fatal(queue, err)
	}
	if got, ok := UIDOf(queue[0].Name); !ok || got != uid || queue[0].Reason != "Resources" || queue[0].Task != "" {
		t.Errorf("%+v", queue[0])
	}
	if q := queue[1]; q.Task != "4-9%2" || q.NodeList != "gpu[01-02]" || q.Start.Format(time.RFC3339) != "2026-01-02T03:04:05Z" || q.Reason != "" {
		t.Errorf("%+v", q)
	}
	if _, ok := UIDOf("x"); ok {
		t.Error("another's job is ours")
	}
	if _, err := ParseQueue("slurm_load_jobs error\n"); err == nil {
		t.Error("an error is a queue")
	}
	account, err := ParseAccount("12|m." + uid + "|CANCELLED by 1000|0:15|n1|2026-01-02T03:04:05|Unknown\n13_4|m|OUT_OF_MEMORY|0:125|n1|Unknown|Unknown\n")
	if err != nil || len(account) != 2 || account[0].State != "CANCELLED" || account[0].Reason != "by 1000" || account[0].Signal != 15 || account[1].Task != "4" {
		t.Errorf("%+v %v", account, err)
	}
	for name, want := range map[string]string{uid + ".end": "end", uid + ".3.run": "run 3", uid + ".end.new.12": "", "x.end": "", uid: ""} {
		_, task, kind, ok := ParseMarkName(name)
		if got := strings.TrimSpace(kind + " " + task); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
	for array, want := range map[string]int{"0-9": 10, "1,3,5": 3, "0-10:2": 6, "0-99%4": 100, "1,1-3": 3, "5": 1, "": -1, "a": -1, "3-1": -1, "0-9%0": -1, "0-999999": -1, "1:2": -1} {
		if n, err := Tasks(array); (err != nil) != (want < 0) || err == nil && n != want {
			t.Errorf("%q: %d %v", array, n, err)
		}
	}
	for d, want := range map[time.Duration]string{0: "", time.Second: "0-00:00:01", 26*time.Hour + time.Minute: "1-02:01:00"} {
		if got := Limit(d); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
}

// TestSignals has a job told to end, as before a time limit or for another job. What is sent to its first process alone reaches the
// program, and an end after that is not said to be a good one.
func TestSignals(t *testing.T) {
	j := job(t)
	j.Run = []string{`trap 'echo usr >>heard' USR1; trap 'exit 0' TERM; echo ready >ready; while :; do sleep 0.05; done`}
	put(t, j)
	cmd := exec.Command("bash", j.Layout.Folder()+"/batch.sh")
	cmd.Dir, cmd.Env = j.Layout.Files(), append(os.Environ(), "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended
	has := func(name string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if b, _ := os.ReadFile(j.Layout.Files() + "/" + name); len(b) > 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("no %s in time", name)
			}
		}
	}
	has("ready")
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	has("heard")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said.String())
	}
	if m := ParseMark(j.UID, "", "end", marks(t, j)["end"]); m.Exit != 0 || !m.Signalled {
		t.Errorf("%+v", m)
	}
	// Another submission of the same job, which Slurm took by mistake, does nothing.
	again := exec.Command("bash", j.Layout.Folder()+"/batch.sh")
	again.Dir, again.Env = j.Layout.Files(), append(os.Environ(), "SLURM_JOB_ID=8")
	if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), "another submission") {
		t.Errorf("%v %s", err, out)
	}
}
