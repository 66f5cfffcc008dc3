package slurm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"minik8s/internal/machine"
	"minik8s/internal/slurm"
	"minik8s/internal/slurm/batch"
	"minik8s/internal/slurm/login"
	"minik8s/internal/slurm/slurmtest"
)

func TestMain(m *testing.M) { machine.Run(m.Run) }

// bed is a Cluster on a real Slurm.
type bed struct {
	*slurm.Cluster
	t   *testing.T
	s   *slurmtest.Cluster
	ctx context.Context
	n   int
}

func newBed(t *testing.T, o slurmtest.Options) *bed {
	s := slurmtest.Start(t, o)
	node := login.New(login.Target{Addr: s.Addr, User: s.User, Key: s.Key, HostKeys: []string{s.HostKey}}, s, slog.New(slog.NewTextHandler(io.Discard, nil)))
	c := slurm.New(node, "some folder/x")
	t.Cleanup(c.Close)
	return &bed{Cluster: c, t: t, s: s, ctx: t.Context()}
}

// job is one that notes each of its runs in a file.
func (b *bed) job(name string) *batch.Job {
	b.t.Helper()
	b.n++
	uid := fmt.Sprintf("00000000-0000-0000-0000-%012d", b.n)
	layout, err := b.Layout(b.ctx, name, uid)
	if err != nil {
		b.t.Fatal(err)
	}
	return &batch.Job{Title: "default/" + name, Name: name, UID: uid, Layout: layout, Run: []string{"echo run >>runs"}, Output: "out", Error: "err", CompileOutput: "compiled.out"}
}

func (b *bed) eventually(what string, ok func() (bool, string)) {
	b.t.Helper()
	last := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		done := false
		if done, last = ok(); done {
			return
		}
	}
	b.t.Fatalf("not in time: %s: %s", what, last)
}

// submitted starts a job until a mark says that it is submitted.
func (b *bed) submitted(j *batch.Job, files ...slurm.File) {
	b.t.Helper()
	b.eventually(j.Name+" is submitted", func() (bool, string) {
		m, err := b.Start(b.ctx, j, "", files)
		return err == nil && m.Kind == "submitted" && m.Job != "", fmt.Sprintf("%+v %v", m, err)
	})
}

// ends waits until a job has ended.
func (b *bed) ends(j *batch.Job) batch.Mark {
	b.t.Helper()
	var end batch.Mark
	b.eventually(j.Name+" ends", func() (bool, string) {
		ends, _, err := b.Ends(b.ctx, j.Layout)
		end = ends["0"]
		return end.Kind == "end", fmt.Sprintf("%v %v", ends, err)
	})
	return end
}

func (b *bed) read(j *batch.Job, name string) string {
	b.t.Helper()
	f, _, err := b.Read(b.ctx, j.Layout, name)
	if err != nil {
		b.t.Fatalf("%q: %v", name, err)
	}
	defer f.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(f)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// TestOnce kills what submits, before and after Slurm has taken the job, and starts it again.
func TestOnce(t *testing.T) {
	b := newBed(t, slurmtest.Options{})
	const kill = `[ -e ~/killed ] || { touch ~/killed; pkill -9 -f start.sh; sleep 0.3; `
	for what, phase := range map[string]func(string, string){"before": b.s.Before, "after": b.s.After} {
		j := b.job("killed-" + what)
		end := map[string]string{"before": "exit 1; }", "after": "exit $code; }"}[what]
		phase("sbatch", kill+end)
		if m, err := b.Start(b.ctx, j, "", nil); err == nil && m.Kind != "" {
			t.Errorf("%s: it was killed, and says %+v", what, m)
		}
		b.submitted(j)
		phase("sbatch", "")
		if m := b.ends(j); m.Exit != 0 {
			t.Errorf("%s: %+v", what, m)
		}
		b.submitted(j) // once more, when it has run
		if got := b.read(j, "runs"); got != "run\n" {
			t.Errorf("%s: it ran %q", what, got)
		}
		if got := b.s.Do("squeue -h -t all -o %j | grep -c " + j.SlurmName()); got != "1" {
			t.Errorf("%s: Slurm has it %s times", what, got)
		}
		b.s.Do("rm killed")
	}
}

// TestCancel cancels a job that is being compiled, one that waits, and one that is gone.
func TestCancel(t *testing.T) {
	b := newBed(t, slurmtest.Options{})
	j := b.job("compiling")
	j.Compile = []string{"touch here", "until [ -e go ]; do sleep 0.1; done"}
	began := make(chan error, 1)
	go func() {
		_, err := b.Start(b.ctx, j, "", nil)
		began <- err
	}()
	b.eventually("it compiles", func() (bool, string) {
		list, err := b.List(b.ctx, j.Layout)
		return slices.ContainsFunc(list, func(e slurm.Entry) bool { return e.Path == "here" }), fmt.Sprint(list, err)
	})
	if err := b.Cancel(b.ctx, j.Layout); err != nil {
		t.Fatal(err)
	}
	if err := <-began; err != nil && !errors.Is(err, slurm.ErrUnderWay) && !strings.Contains(err.Error(), "erminated") {
		t.Error(err)
	}
	b.eventually("nothing compiles any more", func() (bool, string) {
		list := b.s.Do("pgrep -fa 'sh.*(start|compile)' | grep -v pgrep")
		return !strings.Contains(list, ".sh"), list
	})
	if m, err := b.Start(b.ctx, j, "", nil); m.Kind == "submitted" || b.s.Calls("sbatch") != 0 {
		t.Errorf("it was submitted after all: %+v %v", m, err)
	}

	j = b.job("waiting")
	j.Options.Extra = []string{"--hold"}
	b.submitted(j)
	for range 2 {
		if err := b.Cancel(b.ctx, j.Layout); err != nil {
			t.Fatal(err)
		}
	}
	b.eventually("it is cancelled", func() (bool, string) {
		queue, err := b.Queue(b.ctx)
		i := slices.IndexFunc(queue, func(s batch.Seen) bool { return s.Name == j.SlurmName() })
		return i >= 0 && queue[i].State == "CANCELLED", fmt.Sprint(queue, err)
	})
	if err := errors.Join(b.Remove(b.ctx, j.Layout), b.Cancel(b.ctx, j.Layout), b.Remove(b.ctx, j.Layout)); err != nil {
		t.Error(err)
	}
	if got := b.s.Do("ls '" + j.Layout.Base + "/jobs' '" + j.Layout.Base + "/marks'"); strings.Contains(got, j.UID) {
		t.Errorf("left on the login node: %s", got)
	}
}

// TestNames has files with names that a shell would take for something else.
func TestNames(t *testing.T) {
	b := newBed(t, slurmtest.Options{})
	j := b.job("names")
	names := []string{"it's $HOME `id` $(id)", "two\nlines", "-rf", "*", "ü\tx", " first", `back\slash`, `"; exit`, "deep/er/~", "#SBATCH --hold"}
	slices.Sort(names)
	var files []slurm.File
	for _, n := range names {
		files = append(files, slurm.File{Path: n, Content: []byte(n + "!")})
	}
	b.submitted(j, files...)
	b.ends(j)
	var listed []string
	entries, err := b.List(b.ctx, j.Layout)
	for _, e := range entries {
		if e.Path != "runs" && e.Path != "out" && e.Path != "err" {
			listed = append(listed, e.Path)
		}
	}
	if err != nil || !slices.Equal(listed, names) {
		t.Errorf("listed: %q %v", listed, err)
	}
	for _, of := range [][]string{names, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.Contains(n, "\n") })} {
		sums, err := b.Sums(b.ctx, j.Layout, of)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range of {
			if sum := sha256.Sum256([]byte(n + "!")); sums[i] != hex.EncodeToString(sum[:]) {
				t.Errorf("%q: %s", n, sums[i])
			}
		}
	}
	for _, n := range names {
		if got := b.read(j, n); got != n+"!" {
			t.Errorf("%q: %q", n, got)
		}
	}
	if sums, err := b.Sums(b.ctx, j.Layout, []string{"missing", names[0], "*"}); err != nil || sums[0] != "" || sums[1] == "" || sums[2] == "" {
		t.Errorf("checksums, with a file that is not there: %q %v", sums, err)
	}
	for _, f := range []string{"../up", "a/../../b"} {
		if _, err := b.Start(b.ctx, b.job("up"), "", []slurm.File{{Path: f}}); err == nil {
			t.Errorf("%s is taken", f)
		}
	}
	// The marks are read once, and forgotten.
	marks, err := b.Marks(b.ctx)
	if err != nil || !slices.ContainsFunc(marks, func(m batch.Mark) bool { return m.UID == j.UID && m.Kind == "end" }) {
		t.Errorf("%+v %v", marks, err)
	}
	if err := b.Forget(b.ctx, marks); err != nil {
		t.Fatal(err)
	}
	if marks, err = b.Marks(b.ctx); len(marks) != 0 || err != nil {
		t.Errorf("%+v %v", marks, err)
	}
}

// TestFullDisk has no room on the login node, for a while.
func TestFullDisk(t *testing.T) {
	b := newBed(t, slurmtest.Options{HomeBytes: 4 << 20})
	j := b.job("full")
	err := b.Upload(b.ctx, j.Layout, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(make([]byte, 8<<20)))
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "disk") {
		t.Errorf("an upload that does not fit: %v", err)
	}
	if got := b.s.Do("ls -A '" + j.Layout.Base + "/jobs'"); got != "" {
		t.Errorf("a broken upload left %s", got)
	}
	b.s.Do("cat /dev/zero >fill")
	if m, err := b.Start(b.ctx, j, "", []slurm.File{{Path: "some", Content: make([]byte, 1<<20)}}); err == nil {
		t.Errorf("a job without room: %+v", m)
	}
	if n := b.s.Calls("sbatch"); n != 0 {
		t.Errorf("%d calls of sbatch", n)
	}
	b.s.Do("rm fill")
	b.submitted(j, slurm.File{Path: "some", Content: make([]byte, 1<<20)})
	if m := b.ends(j); m.Exit != 0 {
		t.Errorf("%+v", m)
	}
}
